"""Each rule of the claim linter finds its trap, and a good claim has none."""

from textwrap import dedent

import msgspec
import pytest
import yaml

from fishplate.dra import profile
from fishplate.dra.lint import RULES, lint_claim
from fishplate.dra.lint_subject import Setting, Subject
from fishplate.findings import Finding, Verdict
from fishplate.hardware.catalog import Catalog
from fishplate.k8s.claim import ResourceClaimSpec
from fishplate.k8s.resource import Device, DeviceAttribute
from fishplate.sim.fleet import Fleet, make_fleet

GB300 = "Standard_ND128isr_GB300_v6"
RDMA = 'device.attributes["dra.net"].rdma == true'
NUMA = "resource.kubernetes.io/numaNode"


@pytest.fixture(scope="module")
def fleet(catalog: Catalog) -> Fleet:
    return make_fleet([(GB300, 2)], catalog)


@pytest.fixture(scope="module")
def setting(fleet: Fleet) -> Setting:
    return Setting(profile("1.36"), fleet.world(), fleet.nodes)


def read(text: str) -> Subject:
    spec = msgspec.convert({"devices": yaml.safe_load(dedent(text))}, ResourceClaimSpec)
    return Subject("c", spec, lambda path: ".".join(map(str, path)))


def nic(expression: str = RDMA, count: int = 1) -> str:
    selector = f"selectors: [{{cel: {{expression: '{expression}'}}}}]"
    return f"{{name: nic, exactly: {{deviceClassName: dranet.net, count: {count}, {selector}}}}}"


GPU = "{name: gpu, exactly: {deviceClassName: gpu.nvidia.com}}"


def claim(*requests: str, constraints: str = "[]", config: str = "[]") -> str:
    return f"requests: [{', '.join(requests)}]\nconstraints: {constraints}\nconfig: {config}"


def match(name: str, *requests: str) -> str:
    return f"[{{matchAttribute: {name}, requests: [{', '.join(requests)}]}}]"


def ids(findings: list[Finding]) -> set[str]:
    return {finding.id for finding in findings}


@pytest.mark.parametrize(
    "text",
    [
        claim(nic()),
        claim(GPU, nic(count=2), constraints=match(NUMA, "gpu", "nic")),
        claim(nic('device.attributes["dra.net"].?nonesuch.orValue("") == "" && device.driver == "dra.net"')),
        claim(nic('device.attributes["dra.net"].numaNode in [0, 1]')),
        claim(nic(), config="[{opaque: {driver: dra.net, parameters: {rdma: {ncclEnvironment: true}}}}]"),
        claim(nic(), config="[{opaque: {driver: gpu.example.com, parameters: {kind: GpuConfig}}}]"),
        claim("{name: any, firstAvailable: [{name: a, deviceClassName: gpu.nvidia.com}]}"),
    ],
)
def test_a_good_claim_has_nothing_bad(setting: Setting, text: str) -> None:
    assert [one for one in lint_claim(read(text), setting) if one.verdict is Verdict.BAD] == []


TRAPS = {
    "claim-cel-compile": claim(nic("device.nonesuch == 1")),
    "claim-cel-cost": claim(nic("[1,2,3,4,5,6,7,8].all(a, " * 7 + "a == 1" + ")" * 7)),
    "claim-request-form": claim("{name: nothing}"),
    "claim-constraint-form": claim(nic(), constraints=f"[{{matchAttribute: {NUMA}, distinctAttribute: {NUMA}}}]"),
    "claim-unknown-request": claim(nic(), constraints=match(NUMA, "nics")),
    "claim-limits": claim(nic(count=33)),
    "claim-parameters": claim(nic(), config="[{opaque: {driver: dra.net, parameters: {interface: {mtu: 9000}}}}]"),
    "claim-unknown-class": claim("{name: x, exactly: {deviceClassName: gpu.example.com}}"),
    "claim-unknown-attribute": claim(nic('device.attributes["dra.net"].rdmadevice == "x"')),
    "claim-wrong-type": claim(nic('device.attributes["dra.net"].numaNode == "0"')),
    "claim-device-name": claim(nic('device.attributes["dra.net"].rdmaDevice == "mlx5_0"')),
    "claim-no-device": claim(nic('device.attributes["dra.net"].numaNode == 7')),
    "claim-azure-pcie-root": claim(GPU, nic(), constraints=match("resource.kubernetes.io/pcieRoot", "gpu", "nic")),
    "claim-no-node": claim(nic(count=3), constraints=match(NUMA, "nic")),
    "claim-misaligned": claim(GPU, nic('device.attributes["dra.net"].numaNode == 1')),
}


@pytest.mark.parametrize("rule", TRAPS)
def test_a_trap_is_found_by_its_rule(setting: Setting, rule: str) -> None:
    findings = [finding for finding in lint_claim(read(TRAPS[rule]), setting) if finding.id == rule]
    assert findings
    assert all(finding.place and finding.what and finding.remedy for finding in findings)


def test_every_rule_has_a_trap_in_these_tests() -> None:
    assert {rule.id for rule in RULES} == {*TRAPS, "claim-selector-error", "claim-device-plugin"}


def find(setting: Setting, rule: str, text: str) -> Finding:
    (finding,) = (one for one in lint_claim(read(text), setting) if one.id == rule)
    return finding


def test_bad_parameters_are_told_by_their_field(setting: Setting) -> None:
    found = find(setting, "claim-parameters", TRAPS["claim-parameters"])
    assert found.place == "config.0.opaque.parameters.interface.mtu"
    assert found.what.startswith("interface.mtu: not supported by this release")


def test_an_attribute_that_only_some_devices_carry_must_be_guarded(fleet: Fleet) -> None:
    bare = Device(name="eth1", attributes={"dra.net/rdma": DeviceAttribute(bool_=False)})
    first = next(one for one in fleet.slices if one.spec.driver == "dra.net")
    spec = msgspec.structs.replace(first.spec, devices=(*first.spec.devices, bare))
    slices = tuple(msgspec.structs.replace(one, spec=spec) if one is first else one for one in fleet.slices)
    setting = Setting(profile("1.36"), msgspec.structs.replace(fleet.world(), slices=slices), fleet.nodes)
    finding = find(setting, "claim-selector-error", claim(nic('device.attributes["dra.net"].numaNode == 0')))
    assert "fails on 1 of 9 devices: no such key: numaNode" in finding.what
    assert "eth1" in finding.evidence
    guards = (
        'has(device.attributes["dra.net"].numaNode) && device.attributes["dra.net"].numaNode == 0',
        'device.attributes["dra.net"].?numaNode.orValue(-1) == 0',
        'device.attributes["dra.net"].rdma && device.attributes["dra.net"].numaNode == 0',
    )
    for guarded in guards:
        assert "claim-selector-error" not in ids(lint_claim(read(claim(nic(guarded))), setting))


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ('device.attributes["dra.net"].numNode == 0', "dra.net/numaNode"),
        ('device.attributes["dra.net"].pciBusID == "0101:00:00.0"', "resource.kubernetes.io/pciBusID"),
        ('device.attributes["resource.kubernetes.io"].rdmaDevice == "x"', "dra.net/rdmaDevice"),
        ('device.attributes["dra.nett"].rdma', "dra.net/rdma"),
    ],
)
def test_an_unknown_attribute_comes_with_the_nearest_known(setting: Setting, written: str, meant: str) -> None:
    finding = find(setting, "claim-unknown-attribute", claim(nic(written)))
    assert meant in finding.remedy
    assert finding.verdict is Verdict.BAD


def test_an_unknown_attribute_in_a_constraint_is_found(setting: Setting) -> None:
    text = claim(GPU, nic(), constraints=match("resource.kubernetes.io/numanode", "gpu", "nic"))
    finding = find(setting, "claim-unknown-attribute", text)
    assert (finding.place, NUMA in finding.remedy) == ("constraints.0.matchAttribute", True)


def test_a_guarded_unknown_attribute_is_not_called_bad(setting: Setting) -> None:
    text = claim(nic('device.attributes["dra.net"].?speed.orValue(0) == 0'))
    assert find(setting, "claim-unknown-attribute", text).verdict is Verdict.CANNOT_TELL


@pytest.mark.parametrize(
    ("expression", "advice"),
    [
        ('device.attributes["dra.net"].numaNode == "0"', "write 0 without quotes"),
        ('"true" == device.attributes["dra.net"].rdma', "write true without quotes"),
        ('device.attributes["dra.net"].numaNode in ["0", "1"]', "without quotes"),
        ('device.attributes["dra.net"].pciAddress == 101', "with quotes"),
    ],
)
def test_a_value_of_the_wrong_type_comes_with_the_right_form(setting: Setting, expression: str, advice: str) -> None:
    findings = [one for one in lint_claim(read(claim(nic(expression))), setting) if one.id == "claim-wrong-type"]
    assert findings
    assert advice in findings[0].remedy


def test_a_selector_nobody_meets_shows_the_part_and_what_is_published(setting: Setting) -> None:
    finding = find(setting, "claim-no-device", claim(nic(f'{RDMA} && device.attributes["dra.net"].numaNode == 7')))
    assert "numaNode == 7 (published: 0, 1)" in finding.evidence
    assert "rdma" not in finding.evidence


@pytest.mark.parametrize(
    ("resource", "request_", "is_found"),
    [
        ("nvidia.com/gpu", GPU, True),
        ("rdma/ib", nic(), True),
        ("rdma/ib", GPU, False),
        ("nvidia.com/gpu", nic(), False),
    ],
)
def test_a_device_plugin_for_the_same_hardware_on_a_node_is_found(
    fleet: Fleet, resource: str, request_: str, is_found: bool
) -> None:
    plugins = {fleet.nodes[1].name: frozenset({resource})}
    setting = Setting(profile("1.36"), fleet.world(), fleet.nodes, plugins=plugins)
    found = [one for one in lint_claim(read(claim(request_)), setting) if one.id == "claim-device-plugin"]
    assert bool(found) == is_found
    if is_found:
        assert "on 1 of 2 nodes" in found[0].what
        assert found[0].evidence == f"{fleet.nodes[1].name} offers {resource}"


def test_a_claim_that_is_aligned_by_luck_is_called_misaligned(setting: Setting) -> None:
    finding = find(setting, "claim-misaligned", claim(GPU, nic()))
    assert "once others have the NICs of NUMA node 0" in finding.what


def test_all_devices_of_a_node_are_not_misaligned(setting: Setting) -> None:
    everything = GPU.replace("gpu.nvidia.com", "gpu.nvidia.com, count: 4")
    assert lint_claim(read(claim(everything, nic(count=4))), setting) == []


def test_memory_only_numa_nodes_show_as_values_that_never_meet(catalog: Catalog) -> None:
    fleet = make_fleet([(GB300, 1)], catalog, gpu_drivers=["nvidia-0.5-memory-nodes"])
    setting = Setting(profile("1.36"), fleet.world(), fleet.nodes)
    finding = find(setting, "claim-no-node", claim(GPU, nic(), constraints=match(NUMA, "gpu", "nic")))
    assert "gpu: 10, 18, 2, 26; nic: 0, 1" in finding.evidence


def test_a_gpu_of_unknown_place_is_cannot_tell_never_good(catalog: Catalog) -> None:
    fleet = make_fleet([(GB300, 1)], catalog, gpu_drivers=["nvidia-0.4"])
    text = claim(GPU, nic())
    blind = Setting(profile("1.36"), fleet.world(), fleet.nodes)
    assert find(blind, "claim-misaligned", text).verdict is Verdict.CANNOT_TELL
    layout = catalog.find(GB300).layout
    assert layout is not None
    places = {(GB300, place.address): place.numa or 0 for place in layout.gpus}
    knowing = Setting(profile("1.36"), fleet.world(), fleet.nodes, places)
    assert find(knowing, "claim-misaligned", text).verdict is Verdict.BAD


def test_without_slices_only_the_form_is_judged() -> None:
    setting = Setting(profile("1.36"))
    assert ids(lint_claim(read(TRAPS["claim-device-name"]), setting)) == {"claim-device-name"}
    assert lint_claim(read(TRAPS["claim-no-device"]), setting) == []
    assert ids(lint_claim(read(TRAPS["claim-cel-compile"]), setting)) == {"claim-cel-compile"}
