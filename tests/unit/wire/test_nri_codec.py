"""What one end writes the other reads."""

from hypothesis import given
from hypothesis import strategies as st

from fishplate.wire import nri_codec as codec
from fishplate.wire.nri import Adjustment, Container, ContainerState, DeviceNode, Mount, Pod, Rlimit, Update
from fishplate.wire.proto import nri_pb2 as pb

TEXT = st.text(st.characters(codec="utf-8"), max_size=12)
TEXTS = st.lists(TEXT, max_size=3).map(tuple)
MAPS = st.dictionaries(TEXT, TEXT, max_size=3)
IDS = st.integers(0, 2**32 - 1)
LIMITS = st.integers(0, 2**64 - 1)

MOUNTS = st.lists(st.builds(Mount, destination=TEXT, type=TEXT, source=TEXT, options=TEXTS), max_size=2).map(tuple)
NODE = st.builds(
    DeviceNode,
    path=TEXT,
    type=TEXT,
    major=st.integers(-(2**63), 2**63 - 1),
    minor=IDS,
    file_mode=st.none() | IDS,
    uid=st.none() | IDS,
    gid=st.none() | IDS,
)
NODES = st.lists(NODE, max_size=2).map(tuple)
PODS = st.builds(
    Pod,
    id=TEXT,
    name=TEXT,
    uid=TEXT,
    namespace=TEXT,
    labels=MAPS,
    annotations=MAPS,
    runtime_handler=TEXT,
    cgroup_parent=TEXT,
    namespaces=MAPS,
    pid=IDS,
    ips=TEXTS,
)
CONTAINERS = st.builds(
    Container,
    id=TEXT,
    pod_id=TEXT,
    name=TEXT,
    state=st.sampled_from(ContainerState),
    labels=MAPS,
    annotations=MAPS,
    args=TEXTS,
    env=TEXTS,
    mounts=MOUNTS,
    devices=NODES,
    pid=IDS,
    cdi_devices=TEXTS,
)
ADJUSTMENTS = st.builds(
    Adjustment,
    annotations=MAPS,
    mounts=MOUNTS,
    env=MAPS,
    rlimits=st.lists(st.builds(Rlimit, type=TEXT, hard=LIMITS, soft=LIMITS), max_size=2).map(tuple),
    cdi_devices=TEXTS,
    devices=NODES,
    net_devices=MAPS,
)
UPDATES = st.builds(Update, container_id=TEXT, cpus=TEXT, mems=TEXT, unified=MAPS, ignore_failure=st.booleans())


@given(PODS)
def test_pods(pod: Pod) -> None:
    wire = codec.write_pod(pod).SerializeToString()
    assert codec.read_pod(pb.PodSandbox.FromString(wire)) == pod


@given(CONTAINERS)
def test_containers(container: Container) -> None:
    wire = codec.write_container(container).SerializeToString()
    assert codec.read_container(pb.Container.FromString(wire)) == container


@given(ADJUSTMENTS)
def test_adjustments(adjustment: Adjustment) -> None:
    wire = codec.write_adjustment(adjustment).SerializeToString()
    assert codec.read_adjustment(pb.ContainerAdjustment.FromString(wire)) == adjustment


@given(UPDATES)
def test_updates(update: Update) -> None:
    wire = codec.write_update(update).SerializeToString()
    assert codec.read_update(pb.ContainerUpdate.FromString(wire)) == update


def test_nothing_to_change_is_nothing_on_the_wire() -> None:
    assert codec.write_adjustment(Adjustment()).SerializeToString() == b""


def test_a_state_of_a_later_nri_is_unknown() -> None:
    assert codec.read_container(pb.Container(id="c", state=77)).state is ContainerState.UNKNOWN
