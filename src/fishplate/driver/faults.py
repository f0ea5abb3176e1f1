"""Places where the driver may be killed and must lose nothing, by name.

A test sets FISHPLATE_CRASH_AT to one of them and the process dies there as by `kill -9`: no clean-up, no exit handlers.
Outside of tests the variable is not set and nothing happens here.
"""

import os
import signal
from typing import Literal, get_args

Point = Literal[
    "prepare.fetched",  # the claim was read, nothing is written
    "prepare.reserved",  # its devices are marked as taken
    "prepare.spec-written",  # the CDI spec is there
    "prepare.recorded",  # all is recorded, the kubelet has no answer yet
    "status.applied",  # the claim's status is written, the driver does not know
    "unprepare.spec-removed",  # the CDI spec is gone, the devices are still taken
    "unprepare.forgotten",  # the devices are free, the kubelet has no answer yet
    "publish.listed",  # before the first write
    "publish.deleted",  # obsolete slices are gone
    "publish.updated",  # one slice of the pool is new
    "publish.created",  # one slice was added
]
POINTS: tuple[Point, ...] = get_args(Point)

_VARIABLE = "FISHPLATE_CRASH_AT"


def reach(point: Point) -> None:
    if os.environ.get(_VARIABLE) == point:
        os.kill(os.getpid(), signal.SIGKILL)
