from fishplate.node.gpu import is_gpu, parse_nvidia_topology

# As nvidia-smi 580 prints it to a terminal: underlined header, tabs, columns for NICs and affinities.
TOPOLOGY = (
    "\t\x1b[4mGPU0\tGPU1\tGPU2\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n"
    "GPU0\t X \tNV18\tSYS\tNODE\t0-47\t0\t\tN/A\n"
    "GPU1\tNV18\t X \tPXB\tNODE\t0-47\t0\t\tN/A\n"
    "GPU2\tSYS\tPXB\t X \tSYS\t48-95\t1\t\tN/A\n"
    "NIC0\tNODE\tNODE\tSYS\t X \t\t\t\t\n\nLegend:\n\n  X    = Self\n"
)
ADDRESSES = ["0001:00:00.0", "0002:00:00.0", "0003:00:00.0"]


def test_nvidias_table_gives_every_pair_once() -> None:
    links = {(link.a, link.b): link.word for link in parse_nvidia_topology(TOPOLOGY, ADDRESSES)}
    assert links == {
        ("0001:00:00.0", "0002:00:00.0"): "NV18",
        ("0001:00:00.0", "0003:00:00.0"): "SYS",
        ("0002:00:00.0", "0003:00:00.0"): "PXB",
    }


def test_a_table_of_other_gpus_is_not_used() -> None:
    assert parse_nvidia_topology(TOPOLOGY, ADDRESSES[:2]) == ()
    assert parse_nvidia_topology("", ADDRESSES) == ()
    assert parse_nvidia_topology("Failed to initialize NVML", ADDRESSES) == ()


def test_an_nvswitch_and_a_server_console_are_no_gpus() -> None:
    assert is_gpu("10de", "030200")
    assert is_gpu("1002", "120000")
    assert not is_gpu("10de", "068000")
    assert not is_gpu("1a03", "030000")
