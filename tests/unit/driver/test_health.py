import asyncio

import msgspec

from fishplate.driver.health import HealthBoard, judge_nic
from fishplate.topology.inventory import Nic
from fishplate.wire.kubelet import Health
from tests.unit.driver.node_kit import NICS, gb300


def with_port_state(nic: Nic, state: str) -> Nic:
    (rdma,) = nic.rdma
    ports = tuple(msgspec.structs.replace(port, state=state) for port in rdma.ports)
    return msgspec.structs.replace(nic, rdma=(msgspec.structs.replace(rdma, ports=ports),))


def test_a_port_that_is_up_is_well_and_one_that_is_down_is_not() -> None:
    nic = next(nic for nic in gb300().nics if nic.id == NICS[0])
    assert judge_nic(nic) == (Health.HEALTHY, "")
    assert judge_nic(with_port_state(nic, "DOWN")) == (Health.UNHEALTHY, "mlx5_0 port 1 is DOWN")
    assert judge_nic(with_port_state(nic, ""))[0] is Health.UNKNOWN


def test_a_device_that_vanishes_stays_on_the_board_as_gone() -> None:
    host = gb300()
    board = HealthBoard("node", clock=lambda: 7.0)
    board.note(host)
    board.note(msgspec.structs.replace(host, nics=tuple(nic for nic in host.nics if nic.id != NICS[0])))
    gone = [one for one in board.now() if one.health is Health.UNHEALTHY]
    assert [(one.device, one.message, one.last_updated) for one in gone] == [(NICS[0], "the device is gone", 7)]


def test_whoever_watches_is_woken_by_a_change() -> None:
    async def story() -> list[Health]:
        host = gb300()
        board = HealthBoard("node")
        board.note(host)
        seen: list[Health] = []
        async for devices in board.watch():
            (first,) = (one for one in devices if one.device == NICS[0])
            seen.append(first.health)
            if len(seen) == 2:
                return seen
            nics = tuple(with_port_state(nic, "DOWN") if nic.id == NICS[0] else nic for nic in host.nics)
            board.note(msgspec.structs.replace(host, nics=nics))
        return seen

    assert asyncio.run(story()) == [Health.HEALTHY, Health.UNHEALTHY]
