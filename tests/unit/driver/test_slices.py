import msgspec

from fishplate.driver.slices import LABEL, LiveSlice, dropped_fields, plan_slices
from fishplate.k8s.resource import (
    Device,
    DeviceAttribute,
    LiveMeta,
    ObjectMeta,
    OwnerReference,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)


def wanted(*devices: tuple[str, ...], mark: str = "x") -> list[ResourceSlice]:
    return [
        ResourceSlice(
            metadata=ObjectMeta(name=f"{index:05x}-dra.net-n"),
            spec=ResourceSliceSpec(
                driver="dra.net",
                node_name="n",
                pool=ResourcePool(name="n", generation=1, resource_slice_count=len(devices)),
                devices=tuple(
                    Device(name=name, attributes={"dra.net/mark": DeviceAttribute(string=mark)}) for name in names
                ),
            ),
        )
        for index, names in enumerate(devices)
    ]


def stored(slices: list[ResourceSlice], generation: int = 1) -> list[LiveSlice]:
    """As the API server has them after our writes."""
    return [
        msgspec.structs.replace(
            one,
            metadata=msgspec.structs.replace(one.metadata, uid=f"uid-{index}", resource_version="7"),
            spec=msgspec.structs.replace(one.spec, pool=msgspec.structs.replace(one.spec.pool, generation=generation)),
        )
        for index, one in enumerate(plan_slices(slices, []).create)
    ]


def test_the_first_time_all_slices_are_created_as_one_generation() -> None:
    plan = plan_slices(wanted(("a",), ("b",)), [])
    assert (len(plan.create), plan.update, plan.delete) == (2, (), ())
    assert {one.spec.pool.generation for one in plan.create} == {1}
    assert all(one.metadata.labels[LABEL] == "fishplate" for one in plan.create)


def test_what_says_the_same_is_not_written() -> None:
    slices = wanted(("a", "b"))
    assert plan_slices(slices, stored(slices, generation=5)).writes == 0


def test_one_changed_slice_is_one_write_and_keeps_the_generation() -> None:
    before, after = wanted(("a",), ("b",)), wanted(("a",), ("c",))
    plan = plan_slices(after, stored(before, generation=3))
    assert (plan.writes, len(plan.update), plan.generation) == (1, 1, 3)
    assert plan.update[0].metadata.uid == "uid-1"
    assert plan.update[0].metadata.resource_version == "7"


def test_two_changed_slices_are_a_new_generation_for_all() -> None:
    before = stored(wanted(("a",), ("b",), ("c",)), generation=3)
    plan = plan_slices(wanted(("a",), ("x",), ("y",)), before)
    assert [one.spec.pool.generation for one in plan.update] == [4, 4, 4]


def test_a_slice_more_rewrites_the_pool() -> None:
    plan = plan_slices(wanted(("a",), ("b",)), stored(wanted(("a",)), generation=2))
    assert (len(plan.update), len(plan.create), plan.generation) == (1, 1, 3)
    assert all(one.spec.pool.resource_slice_count == 2 for one in (*plan.update, *plan.create))


def test_a_slice_too_many_is_deleted_and_the_rest_says_so() -> None:
    plan = plan_slices(wanted(("a",)), stored(wanted(("a",), ("b",)), generation=2))
    assert [one.metadata.name for one in plan.delete] == ["00001-dra.net-n"]
    assert (plan.update[0].spec.pool.resource_slice_count, plan.generation) == (1, 3)


def test_a_half_written_generation_is_finished() -> None:
    """Killed between two updates: one slice is of the new generation, one is not."""
    slices = wanted(("a",), ("b",))
    left = stored(slices, generation=3)
    left[0] = stored(slices, generation=4)[0]
    plan = plan_slices(slices, left)
    written = {one.metadata.name: one.spec.pool.generation for one in (*plan.update, *plan.create)}
    final = {one.metadata.name: one.spec.pool.generation for one in left} | written
    assert len(set(final.values())) == 1
    assert max(final.values()) >= 4


def test_slices_are_owned_by_the_node() -> None:
    owner = OwnerReference(api_version="v1", kind="Node", name="n", uid="u", controller=True)
    assert plan_slices(wanted(("a",)), [], owner=owner).create[0].metadata.owner_references == (owner,)


def test_fields_that_the_server_dropped_are_named_and_not_written_again() -> None:
    slices = wanted(("a",))
    bare = msgspec.structs.replace(slices[0].spec.devices[0], attributes={})
    assert dropped_fields(slices[0].spec.devices, (bare,)) == ("a: dra.net/mark",)
    (live,) = stored(slices)
    returned = msgspec.structs.replace(live, spec=msgspec.structs.replace(live.spec, devices=(bare,)))
    assert plan_slices(slices, [returned]).writes == 1
    assert plan_slices(slices, [returned], accepted={live.metadata.name: (bare,)}).writes == 0


def test_a_slice_of_somebody_else_is_not_ours() -> None:
    live = stored(wanted(("a",)))[0]
    assert live.ours
    assert not msgspec.structs.replace(live, metadata=LiveMeta(name="x")).ours
