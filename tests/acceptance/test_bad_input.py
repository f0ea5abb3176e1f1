"""Bad input: a clear message, exit 2, or a partial inventory with named problems. Never a traceback, never a hang."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

Program = Callable[..., CompletedProcess[str]]
Host = Callable[..., Path]


def assert_clean(answer: CompletedProcess[str]) -> None:
    assert "Traceback" not in answer.stderr + answer.stdout


def test_unknown_size_names_the_nearest(fishplate: Program) -> None:
    answer = fishplate("inspect", "--size", "Standard_ND128isr_GB30_v6")
    assert answer.returncode == 2
    assert "Standard_ND128isr_GB300_v6" in answer.stderr
    assert_clean(answer)


@pytest.mark.parametrize("size", ["Standard_ND96is_H100_v5", "Standard_D4s_v5"])
def test_size_without_rdma_is_refused_with_the_reason(fishplate: Program, size: str) -> None:
    answer = fishplate("inspect", "--size", size)
    assert answer.returncode == 2
    assert f"{size} is not RDMA-capable" in answer.stderr
    assert_clean(answer)


def test_size_without_a_known_layout_says_so(fishplate: Program) -> None:
    answer = fishplate("inspect", "--size", "Standard_H16r")
    assert answer.returncode == 2
    assert "not known" in answer.stderr
    assert_clean(answer)


def test_root_and_size_exclude_each_other(fishplate: Program) -> None:
    answer = fishplate("inspect", "--root", "/", "--size", "Standard_HB120rs_v3")
    assert answer.returncode == 2
    assert "exclude each other" in answer.stderr


def test_root_that_does_not_exist(fishplate: Program, tmp_path: Path) -> None:
    answer = fishplate("inspect", "--root", str(tmp_path / "nowhere"))
    assert (answer.returncode, "no such directory" in answer.stderr) == (2, True)
    assert_clean(answer)


def test_root_that_is_a_file(fishplate: Program, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    answer = fishplate("inspect", "--root", str(tmp_path / "file"))
    assert (answer.returncode, "not a directory" in answer.stderr) == (2, True)


def test_empty_root(fishplate: Program, tmp_path: Path) -> None:
    answer = fishplate("inspect", "--root", str(tmp_path))
    assert answer.returncode == 2
    assert "holds neither sys/ nor proc/" in answer.stderr
    assert_clean(answer)


def test_root_without_a_pci_bus_is_a_partial_inventory(fishplate: Program, tmp_path: Path) -> None:
    (tmp_path / "sys/class/net").mkdir(parents=True)
    answer = fishplate("inspect", "--root", str(tmp_path), "-o", "json")
    assert answer.returncode == 0
    assert [problem["id"] for problem in json.loads(answer.stdout)["problems"]] == ["discovery.no-pci"]


def test_binary_garbage_everywhere_is_a_partial_inventory(fishplate: Program, make_host: Host) -> None:
    root = make_host()
    for path in root.rglob("*"):
        if path.is_file() and not path.is_symlink():
            path.write_bytes(b"\xff\x00\xfe garbage \x1b[31m" * 3)
    for output in ("table", "json", "yaml", "slice"):
        answer = fishplate("inspect", "--root", str(root), "-o", output, "--node", "node-1")
        assert answer.returncode == 0, answer.stderr
        assert_clean(answer)
        assert "\x1b" not in answer.stdout


def test_loops_of_links_end(fishplate: Program, make_host: Host) -> None:
    root = make_host()
    devices = root / "sys/bus/pci/devices"
    (devices / "0101:00:00.0").unlink()
    (devices / "0101:00:00.0").symlink_to("0101:00:00.0")
    (root / "sys/class/infiniband/mlx5_1").unlink()
    (root / "sys/class/infiniband/mlx5_1").symlink_to("../infiniband")
    answer = fishplate("inspect", "--root", str(root), "-o", "json", timeout=20)
    assert answer.returncode == 0, answer.stderr
    document = json.loads(answer.stdout)
    assert "discovery.link-loop" in {problem["id"] for problem in document["problems"]}
    assert {"0103:00:00.0", "0104:00:00.0"} <= {nic["pci"]["address"] for nic in document["nics"]}


def test_links_that_double_at_every_level_end(fishplate: Program, make_host: Host) -> None:
    root = make_host()
    nest = root / "sys/bus/pci/nest"
    nest.mkdir()
    (nest / "l0").mkdir()
    for level in range(1, 60):
        (nest / f"l{level}").symlink_to(f"l{level - 1}/../l{level - 1}")
    (root / "sys/bus/pci/devices/0101:00:00.0").unlink()
    (root / "sys/bus/pci/devices/0101:00:00.0").symlink_to("../nest/l59")
    assert fishplate("inspect", "--root", str(root), timeout=20).returncode == 0


def test_pipes_are_not_waited_for(fishplate: Program, make_host: Host) -> None:
    root = make_host()
    victim = root / "sys/bus/pci/devices/0101:00:00.0/vendor"
    victim.unlink()
    os.mkfifo(victim)
    answer = fishplate("inspect", "--root", str(root), "-o", "json", timeout=20)
    assert answer.returncode == 0
    assert "discovery.not-a-file" in {problem["id"] for problem in json.loads(answer.stdout)["problems"]}


def test_unreadable_directories_are_named(fishplate: Program, make_host: Host) -> None:
    """root may read everything, so a directory stands where a file should: it cannot be read by anybody."""
    root = make_host()
    victim = root / "sys/bus/pci/devices/0102:00:00.0/numa_node"
    victim.unlink()
    victim.mkdir()
    answer = fishplate("inspect", "--root", str(root), "-o", "json")
    document = json.loads(answer.stdout)
    assert len(document["nics"]) == 4
    assert any(problem["place"].endswith("0102:00:00.0/numa_node") for problem in document["problems"])


def test_links_never_lead_out_of_the_root(fishplate: Program, make_host: Host, tmp_path: Path) -> None:
    root = make_host()
    outside = tmp_path / "outside"
    outside.write_text("secret-of-another-host")
    for name in ("sys/class/dmi/id/product_name", "proc/sys/kernel/hostname"):
        (root / name).unlink()
        (root / name).symlink_to(outside)
    answer = fishplate("inspect", "--root", str(root), "-o", "json")
    assert answer.returncode == 0
    assert "secret-of-another-host" not in answer.stdout


def test_misspelt_command_gets_a_hint(fishplate: Program) -> None:
    answer = fishplate("inspct")
    assert answer.returncode == 2
    assert "Did you mean inspect?" in answer.stderr


def test_catalogue_file_with_mistakes_shows_them_all(fishplate: Program, tmp_path: Path) -> None:
    file = tmp_path / "servers.yaml"
    file.write_text("sources: {}\nsizes:\n- name: my-server\n  provider: bare-metal\n  rdmaa: true\n")
    answer = fishplate("catalog", "--catalog", str(file))
    assert answer.returncode == 2
    assert_clean(answer)
    assert "servers.yaml" in answer.stderr
    assert "rdmaa" in answer.stderr
    assert "architecture" in answer.stderr


def test_missing_catalogue_file_is_named(fishplate: Program, tmp_path: Path) -> None:
    answer = fishplate("catalog", "--catalog", str(tmp_path / "none.yaml"))
    assert answer.returncode == 2
    assert "none.yaml" in answer.stderr
    assert_clean(answer)


def test_reader_that_goes_away_is_no_error(make_host: Host) -> None:
    import subprocess
    import sys

    argv = f"{sys.executable} -m fishplate inspect --root {make_host()} -o json | head -c 1"
    answer = subprocess.run(["bash", "-c", argv], capture_output=True, text=True, timeout=30, check=False)
    assert_clean(answer)
    assert answer.stderr == ""


@pytest.mark.parametrize("output", ["table", "json", "slice"])
def test_a_reader_that_goes_away_is_no_verdict(make_host: Host, output: str) -> None:
    import subprocess
    import sys

    program = f"{sys.executable} -m fishplate inspect --root {make_host('Standard_ND96isr_H100_v5')} -o {output}"
    script = f"{program} | true; exit ${{PIPESTATUS[0]}}"
    answer = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=30, check=False)
    assert answer.returncode in (0, 141)
    assert answer.stderr == ""


def test_a_full_disk_is_the_outside_worlds_fault(fishplate: Program) -> None:
    import subprocess
    import sys

    with open("/dev/full", "w") as full:
        argv = [sys.executable, "-m", "fishplate", "catalog", "-o", "json"]
        answer = subprocess.run(argv, stdout=full, stderr=subprocess.PIPE, text=True, timeout=30, check=False)
    assert answer.returncode == 3
    assert "No space left" in answer.stderr
    assert "Traceback" not in answer.stderr


def test_a_terminal_without_unicode_still_gets_its_table() -> None:
    import os
    import subprocess
    import sys

    argv = [sys.executable, "-m", "fishplate", "catalog"]
    env = os.environ | {"PYTHONIOENCODING": "ascii"}
    answer = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False, env=env)
    assert answer.returncode == 0, answer.stderr


@pytest.mark.parametrize("columns", ["40", "80"])
def test_a_narrow_terminal_cuts_no_cell(columns: str) -> None:
    import os
    import subprocess
    import sys

    script = f"{sys.executable} -m fishplate inspect --size Standard_ND96isr_H100_v5"
    env = os.environ | {"COLUMNS": columns, "TERM": "xterm"}
    argv = ["script", "-qec", script, "/dev/null"]
    answer = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False, env=env)
    assert "\u2026" not in answer.stdout
    assert answer.stdout.count("NV18") == 56


@pytest.mark.parametrize("args", [("inspect", "--size", ""), ("catalog", ""), ("catalog", "--parse", "")])
def test_an_empty_name_is_not_taken_for_none(fishplate: Program, args: tuple[str, ...]) -> None:
    answer = fishplate(*args)
    assert answer.returncode == 2
    assert_clean(answer)


@pytest.mark.parametrize(
    "args",
    [
        ("--node", "Foo Bar_X"),
        ("--node", "n" * 300),
        ("--node", ""),
        ("--driver-name", "Not A Driver!"),
        ("--driver-name", "d" * 64),
    ],
)
def test_names_that_kubernetes_refuses_are_refused_here(fishplate: Program, args: tuple[str, ...]) -> None:
    answer = fishplate("inspect", "--size", "Standard_HB120rs_v3", "-o", "slice", *args)
    assert answer.returncode == 2
    assert "is no name for a" in answer.stderr


def test_the_nodes_name_is_its_host_name_in_lower_case(fishplate: Program, make_host: Host) -> None:
    root = make_host()
    (root / "proc/sys/kernel/hostname").write_text("GPU-Node-01.Example.COM\n")
    answer = fishplate("inspect", "--root", str(root), "-o", "slice")
    assert "nodeName: gpu-node-01.example.com" in answer.stdout


@pytest.mark.parametrize("root", ["a" * 300, "/proc/1/root/nowhere"])
def test_roots_that_cannot_be_opened_are_named(fishplate: Program, root: str) -> None:
    answer = fishplate("inspect", "--root", root)
    assert answer.returncode == 2
    assert_clean(answer)


@pytest.mark.parametrize("file", ["proc/net/route", "sys/devices/system/node/node0/meminfo"])
def test_absurd_numbers_are_survived(fishplate: Program, make_host: Host, file: str) -> None:
    root = make_host()
    text = (root / file).read_text()
    (root / file).write_text(text.replace("100", "9" * 5000).replace("452984832", "9" * 5000))
    assert_clean(fishplate("inspect", "--root", str(root)))


def test_an_absurd_size_name_is_refused(fishplate: Program) -> None:
    answer = fishplate("catalog", "--parse", f"Standard_ND{'9' * 5000}isr_v5")
    assert answer.returncode == 2
    assert_clean(answer)


def test_a_catalogue_file_may_come_from_standard_input() -> None:
    import subprocess
    import sys

    argv = [sys.executable, "-m", "fishplate", "catalog", "--catalog", "-"]
    answer = subprocess.run(argv, input="sizes: 7\n", capture_output=True, text=True, timeout=30, check=False)
    assert answer.returncode == 2
    assert "/dev/stdin" in answer.stderr
