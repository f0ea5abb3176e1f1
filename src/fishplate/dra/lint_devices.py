"""Rules about what a claim would get: whether anything, and whether GPUs and NICs line up."""

from collections.abc import Iterator
from itertools import product

from fishplate.dra.allocator import Allocation, allocate
from fishplate.dra.budget import Budget
from fishplate.dra.device_plugins import hardware_of
from fishplate.dra.fleet import Verdict as Fit
from fishplate.dra.intent_attributes import AMD_NUMA_NODE, NIC_NUMA_NODE, NUMA_NODE, PCIE_ROOT
from fishplate.dra.intent_classes import GPU_DRIVERS, NIC_DRIVER
from fishplate.dra.intent_per_numa import BUS_ID_KEYS
from fishplate.dra.lint_subject import Hit, Known, Setting, Subject
from fishplate.dra.scene import Scene
from fishplate.dra.world import Node
from fishplate.errors import AllocationError, BudgetError
from fishplate.findings import Verdict
from fishplate.k8s.claim import AllocationResult, DeviceAllocationResult, DeviceRequestAllocationResult
from fishplate.topology.inventory import PciFunction
from fishplate.topology.relations import NEARNESS, Pcie, relate_functions

_VM_SIZE = "azure.dra.net/vmSize"
_GPU_DRIVERS = frozenset(GPU_DRIVERS.values())
_HARDWARE = {NIC_DRIVER: "nic"} | dict.fromkeys(_GPU_DRIVERS, "gpu")
_MOST_GROUPS, _MOST_PODS, _MOST_STEPS = 16, 32, 100_000
_SHOWN = 4


def find_roots_on_azure(subject: Subject, setting: Setting) -> Iterator[Hit]:
    azure = any(_VM_SIZE in known.attributes for known in setting.devices)
    for index, one in enumerate(subject.devices.constraints):
        if one.match_attribute == PCIE_ROOT and azure:
            yield Hit(("constraints", index, "matchAttribute"), f"{PCIE_ROOT} of two devices never match on Azure")


def find_unfit(subject: Subject, setting: Setting) -> Iterator[Hit]:
    """Every request finds devices, and still no node can take the claim."""
    if setting.scene is None or not setting.nodes or not _all_find_devices(subject, setting):
        return
    answer = setting.survey(subject)
    if any(group.verdict in (Fit.FITS, Fit.UNKNOWN) for group in answer.groups):
        return
    errors = sorted({group.error for group in answer.groups if group.error})
    what = f"none of the {len(setting.nodes)} nodes can take this claim, though each request finds devices"
    yield Hit(("requests",), what, evidence="; ".join([*_shared_values(subject, setting), *errors]))


def _all_find_devices(subject: Subject, setting: Setting) -> bool:
    trials = [setting.try_request(subject, asked) for asked in subject.asked]
    return bool(trials) and all(trial.matching and not trial.failures for trial in trials)


def _shared_values(subject: Subject, setting: Setting) -> Iterator[str]:
    """What each request's devices carry under the attribute that they have to share."""
    for one in subject.devices.constraints:
        if one.match_attribute is None:
            continue
        said = []
        for asked in subject.asked:
            if one.requests and not {asked.name, asked.name.partition("/")[0]} & set(one.requests):
                continue
            trial = setting.try_request(subject, asked)
            values = {_value(known, one.match_attribute) for known in trial.matching}
            shown = sorted(map(str, values - {None}))[:8]
            said.append(f"{asked.name}: {', '.join(shown) or 'absent'}")
        yield f"{one.match_attribute} is {'; '.join(said)}"


def _value(known: Known, key: str) -> object:
    attribute = known.attributes.get(key)
    return None if attribute is None else attribute.value


def find_plugin_nodes(subject: Subject, setting: Setting) -> Iterator[Hit]:
    """Nodes on which a device plugin hands out what the claim asks for too."""
    for asked in subject.asked:
        devices = setting.of_class(asked.class_name)
        kinds = {_HARDWARE.get(known.driver, "") for known in devices} - {""}
        both = {
            known.node: sorted(name for name in setting.plugins.get(known.node, ()) if hardware_of(name) in kinds)
            for known in devices
        }
        nodes = [node for node, names in both.items() if names]
        if nodes:
            said = (
                f"request {asked.name}: a device plugin offers the same hardware on {len(nodes)} of {len(both)} nodes"
            )
            evidence = f"{nodes[0]} offers {', '.join(both[nodes[0]])}"
            yield Hit((*asked.path, "deviceClassName"), said, evidence=evidence)


# -- alignment ---------------------------------------------------------------------------------------------------


def find_misaligned(subject: Subject, setting: Setting) -> Iterator[Hit]:
    """What such pods get on a node of each sort: while it fills up, and when one NUMA node has no NICs left."""
    if setting.scene is None or not setting.nodes or not _all_find_devices(subject, setting):
        return
    by_node: dict[str, dict[tuple[str, str], Known]] = {}
    for known in setting.devices:
        by_node.setdefault(known.node, {})[known.driver, known.device.name] = known
    told = set()
    fitting = [group for group in setting.survey(subject).groups if group.verdict is Fit.FITS]
    for group in fitting[:_MOST_GROUPS]:
        node = group.nodes[0]
        devices = by_node.get(node.name, {})
        for situation, result in _allocations(subject, setting, node, devices):
            hit = _judge(situation, result, node, devices, setting)
            if hit is not None and hit.verdict not in told:
                told.add(hit.verdict)
                yield hit


def _allocations(
    subject: Subject, setting: Setting, node: Node, devices: dict[tuple[str, str], Known]
) -> Iterator[tuple[str, AllocationResult]]:
    scene = setting.scene
    assert scene is not None
    budget = Budget(steps=_MOST_STEPS)

    def ask(given: Scene) -> Allocation | None:
        try:
            return allocate(given, node, [subject.claim], profile=setting.profile, budget=budget)
        except (AllocationError, BudgetError):
            return None

    filling = scene
    for number in range(_MOST_PODS):
        if (found := ask(filling)) is None:
            break
        yield "such a pod" if number == 0 else f"pod {number + 1} on a node", found.results[0]
        filling = filling.holding(found.results, f"pod {number}")
    for numa, taken in _nics_by_numa(devices).items():
        if (found := ask(scene.holding([taken], "others"))) is not None:
            yield f"once others have the NICs of NUMA node {numa}, such a pod", found.results[0]


def _nics_by_numa(devices: dict[tuple[str, str], Known]) -> dict[int, AllocationResult]:
    """As if somebody held them."""
    held: dict[int, list[DeviceRequestAllocationResult]] = {}
    for (driver, name), known in devices.items():
        numa = _first_number(known, NUMA_NODE, NIC_NUMA_NODE)
        if driver == NIC_DRIVER and numa is not None:
            one = DeviceRequestAllocationResult(request="nic", driver=driver, pool=known.pool, device=name)
            held.setdefault(numa, []).append(one)
    return {numa: AllocationResult(devices=DeviceAllocationResult(results=tuple(held[numa]))) for numa in sorted(held)}


def _judge(
    who: str, result: AllocationResult, node: Node, devices: dict[tuple[str, str], Known], setting: Setting
) -> Hit | None:
    """A GPU without a near NIC, or a NIC without a near GPU, is misaligned."""
    places = [(one.driver, one.device) for one in result.devices.results]
    taken = [devices[place] for place in places if place in devices]
    gpus = [known for known in taken if known.driver in _GPU_DRIVERS]
    nics = [known for known in taken if known.driver == NIC_DRIVER]
    if not gpus or not nics:
        return None
    size = next((str(_value(nic, _VM_SIZE)) for nic in nics if _VM_SIZE in nic.attributes), "")
    words = {
        (gpu.device.name, nic.device.name): relate_functions(_gpu_function(gpu, size, setting), _nic_function(nic))
        for gpu, nic in product(gpus, nics)
    }
    lone = {known.device.name for known in (*gpus, *nics) if not _has_near(known.device.name, words)}
    if not lone:
        return None
    far = {pair: word for pair, word in words.items() if lone & set(pair)}
    pairs = [f"{gpu} – {_label(nic, nics)}: {word}" for (gpu, nic), word in far.items()]
    evidence = f"node {node.name}: {', '.join(pairs[:_SHOWN])}"
    if Pcie.UNKNOWN in far.values():
        said = f"whether GPU and NIC of {who} are near each other is not published"
        return Hit(("requests",), said, evidence=evidence, verdict=Verdict.CANNOT_TELL)
    said = f"{who} gets a GPU and a NIC of different NUMA nodes (SYS): no GPUDirect between them"
    return Hit(("requests",), said, evidence=evidence)


def _has_near(name: str, words: dict[tuple[str, str], Pcie]) -> bool:
    return any(name in pair and NEARNESS[word] < NEARNESS[Pcie.SYS] for pair, word in words.items())


def _label(name: str, nics: list[Known]) -> str:
    nic = next(known for known in nics if known.device.name == name)
    rdma = _value(nic, "dra.net/rdmaDevice")
    return f"{name} ({rdma})" if rdma else name


def _gpu_function(gpu: Known, size: str, setting: Setting) -> PciFunction:
    """By the catalogue where it knows the place: what a driver publishes may be the node of the GPU's own memory."""
    address = next((str(_value(gpu, key)) for key in BUS_ID_KEYS if key in gpu.attributes), "")
    numa = setting.places.get((size, address))
    if numa is None:
        numa = _first_number(gpu, NUMA_NODE, AMD_NUMA_NODE)
    return PciFunction(address=address or gpu.device.name, numa_node=numa, root=_root(gpu))


def _nic_function(nic: Known) -> PciFunction:
    return PciFunction(address=nic.device.name, numa_node=_first_number(nic, NUMA_NODE, NIC_NUMA_NODE), root=_root(nic))


def _root(known: Known) -> str | None:
    root = _value(known, PCIE_ROOT)
    return root if isinstance(root, str) else None


def _first_number(known: Known, *keys: str) -> int | None:
    values = (_value(known, key) for key in keys)
    return next((value for value in values if isinstance(value, int) and value >= 0), None)
