import contextlib
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fishplate.errors import DocumentError
from fishplate.hardware.catalog import load_catalog
from fishplate.hardware.document import parse_document

DOCS = Path(__file__).parents[3] / "docs" / "catalogue.md"

GOOD = """\
sources:
  ours: "rack survey, 2026-02"
sizes:
  - name: lab-h100
    provider: bare-metal
    rdma: true
    architecture: x86_64
    dmiProducts: ["ACME GX-8*"]
    numaNodes: 2
    gpu: {model: H100, productName: NVIDIA H100 80GB HBM3, vendor: nvidia, count: 1, memoryGib: 80,
      pciVendor: "10de", pciDevice: "2330", link: NV18}
    nic: {model: ConnectX-7, generation: NDR, count: 1, rateGbps: 400, linkLayer: InfiniBand,
      pciVendor: "15b3", pciDevice: "1021"}
    layout:
      basis: documented
      basisNote: seen
      sources: [ours]
      gpus:
        - {address: "0000:1b:00.0", numa: 0, bridges: ["0000:15:01.0", "0000:16:00.0"], pair: "0000:18:00.0"}
      nics:
        - {address: "0000:18:00.0", numa: 0, bridges: ["0000:15:01.0", "0000:16:00.0"], pair: "0000:1b:00.0"}
    sources: [ours]
"""


class Refusal:
    """Writes a file with changes, and returns what the catalogue says about it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __call__(self, *changes: tuple[str, str], text: str = GOOD) -> str:
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        self.path.write_text(text)
        with pytest.raises(DocumentError) as caught:
            load_catalog([self.path])
        assert str(self.path) in str(caught.value)
        assert caught.value.remedy
        return str(caught.value)


@pytest.fixture
def refuse(tmp_path: Path) -> Refusal:
    return Refusal(tmp_path / "servers.yaml")


def line_of(fragment: str, text: str = GOOD) -> int:
    return next(number for number, line in enumerate(text.splitlines(), 1) if fragment in line)


def test_a_server_of_ones_own_is_found_by_name_and_by_dmi(tmp_path: Path) -> None:
    path = tmp_path / "servers.yaml"
    path.write_text(GOOD)
    catalog = load_catalog([path])
    server = catalog.find("LAB-H100")
    assert catalog.match_dmi("acme GX-8000\n") == server
    assert catalog.match_dmi("Virtual Machine") is None
    assert server.layout
    assert server.layout.gpus[0].root == "pci0000:15"
    assert catalog.sources_of(server) == {"ours": "rack survey, 2026-02"}
    assert catalog.find("ND96isr_H100_v5")


def test_the_documented_example_loads(tmp_path: Path) -> None:
    blocks = re.findall(r"```yaml\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    for number, block in enumerate(blocks):
        path = tmp_path / f"{number}.yaml"
        path.write_text(block)
        assert len(load_catalog([path]).sizes) > len(load_catalog().sizes)


def test_a_misspelt_field_is_named_with_its_line_path_and_the_nearest(refuse: Refusal) -> None:
    said = refuse(("numaNodes: 2", "numa_node: 2"))
    assert f"line {line_of('numaNodes')}: sizes[0].numa_node: unknown field 'numa_node'" in said
    assert "did you mean numaNodes?" in said


def test_a_field_inside_a_place_has_its_full_path(refuse: Refusal) -> None:
    said = refuse(('{address: "0000:18:00.0", numa: 0', '{address: "0000:18:00.0", numma: 0'))
    assert "sizes[0].layout.nics[0].numma" in said
    assert "did you mean numa?" in said


def test_several_mistakes_are_shown_together(refuse: Refusal) -> None:
    said = refuse(("rdma: true", "rdma: maybe"), ("    architecture: x86_64\n", ""), ("vendor: nvidia", "vendor: acme"))
    assert "3 problems" in said
    for path in ("sizes[0].rdma", "sizes[0].architecture: this field is missing", "sizes[0].gpu.vendor"):
        assert path in said


def test_an_unquoted_identifier_is_told_to_be_quoted(refuse: Refusal) -> None:
    assert "put it in quotes" in refuse(('pciDevice: "1021"', "pciDevice: 1021"))
    assert "put it in quotes" in refuse(("rdma: true", "retires: 2027-05-31\n    rdma: true"))


@pytest.mark.parametrize(
    ("old", "new", "path", "what"),
    [
        ('address: "0000:1b:00.0"', 'address: "1b:00.0"', "layout.gpus[0].address", "not a PCI address"),
        ('"0000:15:01.0", ', '"0000:15:1.0", ', "layout.gpus[0].bridges[0]", "not a PCI address"),
        ("numaNodes: 2", "numaNodes: 0", "numaNodes", "above 0"),
        ("nics:\n        - {address", "nics:\n        - {root: pci15, address", "layout.nics[0].root", "PCI root"),
        ('"0000:1b:00.0", numa: 0', '"0000:1b:00.0", numa: 2', "layout.gpus[0].numa", "out of range"),
        ('"0000:1b:00.0", numa: 0', '"0000:1b:00.0", numa: -1', "layout.gpus[0].numa", "out of range"),
        ("vendor: nvidia, count: 1", "vendor: nvidia, count: 8", "layout.gpus", "gpu count is 8"),
        ("NDR, count: 1", "NDR, count: 2", "layout.nics", "nic count is 2"),
        ('pair: "0000:1b:00.0"', 'pair: "0000:1c:00.0"', "layout.nics[0].pair", "not a device of the other kind"),
        (', pair: "0000:1b:00.0"', "", "layout.gpus[0].pair", "mutual"),
        ("rateGbps: 400", "rateGbps: .nan", "nic.rateGbps", "above 0"),
        ("rdma: true", "rdma: false", "whyNotRdma", "without a reason"),
        ('pciDevice: "1021"', 'pciDevice: "0x1021"', "nic.pciDevice", "hex digits"),
        ("    sources: [ours]\n", "    sources: [theirs]\n", "sources[0]", "not explained"),
    ],
)
def test_what_cannot_be_true_is_refused(refuse: Refusal, old: str, new: str, path: str, what: str) -> None:
    said = refuse((old, new))
    assert re.search(rf"line \d+: sizes\[0\]\.{re.escape(path)}: .*{re.escape(what)}", said), said


def test_an_address_may_be_used_once(refuse: Refusal) -> None:
    assert "used 2 times" in refuse(('address: "0000:18:00.0"', 'address: "0000:1b:00.0"'))


def test_a_name_given_twice_in_one_file_is_refused(refuse: Refusal) -> None:
    again = GOOD.partition("sizes:\n")[2].replace("lab-h100", "LAB-H100")
    said = refuse(text=GOOD + again)
    assert "sizes[1].name: LAB-H100 is already entry 1" in said


@pytest.mark.parametrize("name", ["Standard_HX176rs", "standard_hb120-96RS_v3"])
def test_a_name_the_catalogue_has_is_refused(refuse: Refusal, name: str) -> None:
    assert f"{name} is already in the catalogue" in refuse(("lab-h100", name))


@pytest.mark.parametrize(
    "text",
    ["", "just words", "- a\n- list", "sources: {}\n", "sizes: 3\nsources: {}\n", "sources: {}\nsizes: [7]\n", "42"],
)
def test_a_file_of_another_kind_is_refused_without_a_traceback(refuse: Refusal, text: str) -> None:
    assert "problem" in refuse(text=text)


def test_broken_yaml_names_the_line(refuse: Refusal) -> None:
    assert "servers.yaml:2: not YAML" in refuse(text="sources: {}\nsizes: a: b\n")


@pytest.mark.parametrize(
    "text", ["a: \x00", "!!python/object:os.system {}", "a: *nobody", "[" * 5000, "a: 2027-13-45", "a: !!int x"]
)
def test_hostile_yaml_is_refused(refuse: Refusal, text: str) -> None:
    assert "not YAML" in refuse(text=text)


def test_a_missing_file_and_a_binary_file_are_errors_of_the_user(tmp_path: Path) -> None:
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"\xff\xfe\x00")
    for path in (tmp_path / "none.yaml", tmp_path, binary):
        with pytest.raises(DocumentError) as caught:
            load_catalog([path])
        assert str(path) in str(caught.value)


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["sources", "sizes", "name", "gpu", "layout", "nics", "x"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@given(st.one_of(st.text(max_size=40), JUNK.map(json.dumps), JUNK.map(lambda junk: json.dumps({"sizes": [junk]}))))
def test_any_text_is_a_document_or_an_error_we_can_name(text: str) -> None:
    with contextlib.suppress(DocumentError):
        parse_document(text, "any.yaml")
