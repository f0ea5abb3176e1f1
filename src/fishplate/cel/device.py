"""A device as selectors see it: driver, attributes, capacity, and whether it may be allocated more than once.

Built for fleets: the attributes stay the plain mapping they came as, keyed by qualified name, so that 80,000 devices
can share keys and values. The nested maps that CEL talks about are made only when an expression walks over them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from fishplate.cel.values import CelMap, DomainMap, Value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fishplate.k8s.quantity import Quantity
    from fishplate.k8s.semver import Semver

Scalar: TypeAlias = "int | bool | str | Semver"
AttributeValue: TypeAlias = "Scalar | tuple[Scalar, ...]"


class Device:
    """`problem` is set where upstream fails before it evaluates anything: then every selector fails with that message.

    `plain` devices have neither a problem nor list attributes.
    """

    __slots__ = ("allow_multiple_allocations", "attributes", "capacity", "driver", "has_lists", "plain", "problem")

    def __init__(
        self,
        driver: str,
        attributes: Mapping[str, AttributeValue],
        capacity: Mapping[str, Quantity] | None = None,
        *,
        allow_multiple_allocations: bool = False,
        has_lists: bool | None = None,
        problem: str = "",
    ) -> None:
        self.driver = driver
        self.attributes = attributes
        self.capacity: Mapping[str, Quantity] = capacity if capacity is not None else {}
        self.allow_multiple_allocations = allow_multiple_allocations
        self.has_lists = tuple in map(type, attributes.values()) if has_lists is None else has_lists
        self.problem = problem
        self.plain = not (problem or self.has_lists)

    def first_list(self) -> str:
        """The name of a list attribute; only asked for where there is one."""
        return next(name for name, value in self.attributes.items() if isinstance(value, tuple))

    def as_value(self) -> CelMap:
        """The `device` variable."""
        return CelMap.of(
            {
                "driver": self.driver,
                "allowMultipleAllocations": self.allow_multiple_allocations,
                "attributes": _by_domain(self.driver, self.attributes),
                "capacity": _by_domain(self.driver, self.capacity),
            }
        )


def _by_domain(driver: str, values: Mapping[str, Value]) -> DomainMap:
    domains: dict[str, dict[str, Value]] = {}
    for name, value in values.items():
        domain, slash, key = name.partition("/")
        if slash:
            domains.setdefault(domain, {})[key] = value
        else:
            # Where `x` and `driver/x` both exist, upstream takes either; the qualified one is as good.
            domains.setdefault(driver, {}).setdefault(name, value)
    return DomainMap({(str, domain): (domain, CelMap.of(inner)) for domain, inner in domains.items()})
