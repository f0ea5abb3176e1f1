"""What lint rules look at: one claim, and what is known about the cluster it is for."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from fishplate.cel import Program
from fishplate.dra.budget import Budget
from fishplate.dra.fleet import survey
from fishplate.dra.intent_published import qualify
from fishplate.dra.scene import Scene
from fishplate.dra.selectors import Selectors
from fishplate.errors import CelRuntimeError
from fishplate.findings import Finding, Verdict
from fishplate.k8s.claim import ResourceClaim, default_claim_spec
from fishplate.k8s.resource import ObjectMeta

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from fishplate.cel import Device as CelDevice
    from fishplate.documents import Path
    from fishplate.dra.fleet import Survey
    from fishplate.dra.profile import Profile
    from fishplate.dra.world import Node, World
    from fishplate.k8s.claim import DeviceSelector, ResourceClaimSpec
    from fishplate.k8s.resource import Device, DeviceAttribute


_MOST_STEPS = 100_000


def _new_budget() -> Budget:
    return Budget(steps=_MOST_STEPS)


class Hit(NamedTuple):
    """One thing a rule found: where in the claim, what, and on what evidence."""

    path: Path
    what: str
    evidence: str = ""
    remedy: str = ""
    verdict: Verdict = Verdict.BAD

    def as_finding(self, rule: str, place: str, remedy: str) -> Finding:
        """`remedy` is the rule's, where the hit has none of its own."""
        return Finding(
            id=rule,
            place=place,
            what=self.what,
            verdict=self.verdict,
            evidence=self.evidence,
            remedy=self.remedy or remedy,
        )


class Asked(NamedTuple):
    """A request or an alternative of one, as constraints name it."""

    name: str
    path: Path
    class_name: str
    selectors: tuple[DeviceSelector, ...]
    number: int
    mode: str


class Selector(NamedTuple):
    asked: Asked
    path: Path
    text: str
    program: Program | str


class Known(NamedTuple):
    """A published device."""

    node: str
    pool: str
    driver: str
    device: Device
    attributes: dict[str, DeviceAttribute]
    seen: CelDevice


class Trial(NamedTuple):
    """A request's selectors on every device of its class."""

    of_class: list[Known]
    matching: list[Known]
    failures: list[tuple[Selector, Known, str]]


class Subject:
    """One claim. `where` tells the place of a field, given its path below `devices`."""

    def __init__(self, name: str, spec: ResourceClaimSpec, where: Callable[[Path], str]) -> None:
        self.name = name
        self.where = where
        self.devices = default_claim_spec(spec).devices
        self.claim = ResourceClaim(metadata=ObjectMeta(name=name), spec=default_claim_spec(spec))

    @cached_property
    def asked(self) -> tuple[Asked, ...]:
        return tuple(self._read_requests())

    def _read_requests(self) -> Iterator[Asked]:
        for index, request in enumerate(self.devices.requests):
            path: Path = ("requests", index)
            if (one := request.exactly) is not None:
                place = (*path, "exactly")
                yield Asked(request.name, place, one.device_class_name, one.selectors, one.count, one.allocation_mode)
            for number, other in enumerate(request.first_available):
                name, place = f"{request.name}/{other.name}", (*path, "firstAvailable", number)
                yield Asked(name, place, other.device_class_name, other.selectors, other.count, other.allocation_mode)


class Setting:
    """What is published, to which scheduler. Without a world only the form of a claim can be judged.

    `places` holds the NUMA node of GPUs that do not publish it, by VM size and PCI address; `plugins` the GPU and RDMA
    resources that device plugins offer, by node.
    """

    def __init__(
        self,
        profile: Profile,
        world: World | None = None,
        nodes: tuple[Node, ...] = (),
        places: Mapping[tuple[str, str], int] | None = None,
        plugins: Mapping[str, frozenset[str]] | None = None,
    ) -> None:
        self.profile = profile
        self.nodes = nodes
        self.places = places or {}
        self.plugins = plugins or {}
        self.scene = Scene(world, profile) if world is not None else None
        self.classes = self.scene.classes if self.scene else {}
        self._selectors = self.scene.selectors if self.scene else Selectors(profile)
        self._of_class: dict[str, list[Known]] = {}
        self._trials: dict[tuple[Subject, str], Trial] = {}
        self._surveys: dict[Subject, Survey] = {}

    @cached_property
    def devices(self) -> list[Known]:
        slices = self.scene.world.slices if self.scene else ()
        return [
            Known(
                one.spec.node_name or one.spec.pool.name,
                one.spec.pool.name,
                one.spec.driver,
                device,
                qualify(one.spec.driver, device),
                self._selectors.view(device, one.spec.driver),
            )
            for one in slices
            for device in one.spec.devices
        ]

    @cached_property
    def kinds(self) -> dict[str, set[str]]:
        """The types under which each attribute is published, by its full name."""
        kinds: dict[str, set[str]] = {}
        for known in self.devices:
            for key, attribute in known.attributes.items():
                kinds.setdefault(key, set()).add(kind_of(attribute))
        return kinds

    def read_selectors(self, subject: Subject) -> Iterator[Selector]:
        for asked in subject.asked:
            for index, selector in enumerate(asked.selectors):
                if selector.cel is not None:
                    path = (*asked.path, "selectors", index, "cel", "expression")
                    text = selector.cel.expression
                    yield Selector(asked, path, text, self._selectors.compile(text))

    def of_class(self, name: str) -> list[Known]:
        """The devices that a class admits; those on which its selectors fail are not among them."""
        if name not in self._of_class:
            device_class = self.classes.get(name)
            written = device_class.spec.selectors if device_class else ()
            programs = [self._selectors.compile(one.cel.expression) for one in written if one.cel]
            usable = [program for program in programs if isinstance(program, Program)]
            complete = device_class is not None and len(usable) == len(written)
            self._of_class[name] = [
                known for known in self.devices if complete and all(matches(each, known) is True for each in usable)
            ]
        return self._of_class[name]

    def try_request(self, subject: Subject, asked: Asked) -> Trial:
        key = (subject, asked.name)
        if key not in self._trials:
            own = [one for one in self.read_selectors(subject) if one.asked == asked]
            trial = Trial(self.of_class(asked.class_name), [], [])
            for known in trial.of_class:
                self._try_device(own, known, trial)
            self._trials[key] = trial
        return self._trials[key]

    def _try_device(self, selectors: list[Selector], known: Known, trial: Trial) -> None:
        """In order, ending at the first that says no, as the scheduler does."""
        for one in selectors:
            answer = matches(one.program, known) if isinstance(one.program, Program) else False
            if isinstance(answer, str):
                trial.failures.append((one, known, answer))
                return
            if not answer:
                return
        trial.matching.append(known)

    def survey(self, subject: Subject) -> Survey:
        """Every node as if nothing were in use but what the world's claims hold."""
        assert self.scene is not None
        if subject not in self._surveys:
            self._surveys[subject] = survey(self.scene, self.nodes, [subject.claim], new_budget=_new_budget)
        return self._surveys[subject]


def matches(program: Program, known: Known) -> bool | str:
    """Whether it matches, or why that cannot be told."""
    try:
        return program.matches(known.seen)
    except CelRuntimeError as error:
        return error.what


def kind_of(attribute: DeviceAttribute) -> str:
    kinds = {"int": attribute.int_, "bool": attribute.bool_, "string": attribute.string, "version": attribute.version}
    return next((name for name, value in kinds.items() if value is not None), "list")
