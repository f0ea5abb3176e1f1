"""The Kubernetes DRA dialect of CEL: compile a selector, match devices, price it, explain it.

environment("1.36").compile('device.driver == "dra.net"').matches(device)
"""

from fishplate.cel.access import Reads
from fishplate.cel.decode import decode_device
from fishplate.cel.device import Device
from fishplate.cel.environment import MAX_EXPRESSION_BYTES, Environment, environment
from fishplate.cel.explain import Clause, Seen
from fishplate.cel.program import Outcome, Program
from fishplate.cel.tracker import COST_LIMIT

__all__ = [
    "COST_LIMIT",
    "MAX_EXPRESSION_BYTES",
    "Clause",
    "Device",
    "Environment",
    "Outcome",
    "Program",
    "Reads",
    "Seen",
    "decode_device",
    "environment",
]
