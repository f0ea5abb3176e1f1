"""Azure's VM-size names, taken apart.

    Standard_ND96isr_H100_v5
             │││ │   │    └─ version
             │││ │   └────── accelerator (names since 2020)
             │││ └────────── features, one letter each; r is RDMA
             ││└──────────── vCPUs, with -N behind it when constrained
             │└───────────── sub-family
             └────────────── family

A name is a hint: what the compute API says in `RdmaEnabled` is the truth, and the catalogue comes before the grammar.
The one thing this module must never do is to read a name with an r as one without. So a name that does not fit is
repaired only when the repair is plain (and then a warning says so), and refused otherwise.
"""

import functools
import re
from importlib import resources

import msgspec
import yaml

from fishplate.errors import UnknownNameError

_NAME = re.compile(
    r"""(?:(?P<prefix>standard|basic|internal|experimental)_)?
        (?P<family>[a-z])(?P<sub_family>[a-z]{0,2})
        (?P<vcpus>\d{1,5})(?:-(?P<constrained>\d{1,5}))?
        (?P<features>[a-z]*?)(?P<generation>g\d{1,3})?
        (?P<tokens>(?:_(?!v\d+(?:_promo)?$|promo$)[a-z0-9]+)*)
        (?:_v(?P<version>\d{1,3}))?
        (?P<promo>_promo)?""",
    re.VERBOSE | re.IGNORECASE | re.ASCII,
)
_ACCELERATOR = re.compile(r"[A-Z]+\d+[A-Z0-9]*")
# A constrained count after an underscore, and a version without one: both are in Microsoft's own tables.
_REPAIRS = (
    (re.compile(r"(?<=\d)_(\d+)(?=[a-z])", re.IGNORECASE | re.ASCII), r"-\1"),
    (re.compile(r"(?<=[a-z])v(\d+)$", re.IGNORECASE | re.ASCII), r"_v\1"),
    (re.compile(r"(?<=[a-z0-9])[- ]+(?=[a-z])", re.IGNORECASE | re.ASCII), "_"),
)


class Accelerator(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    meaning: str
    arm: bool = False


class Grammar(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The words of data/size_grammar.yaml."""

    prefixes: dict[str, str]
    families: dict[str, str]
    sub_families: dict[str, str]
    features: dict[str, str]
    accelerators: dict[str, Accelerator]
    fabrics: dict[str, str]
    tokens: dict[str, str]
    ordinal: frozenset[str]


@functools.cache
def load_grammar() -> Grammar:
    text = resources.files("fishplate.hardware").joinpath("data", "size_grammar.yaml").read_text(encoding="utf-8")
    return msgspec.convert(yaml.load(text, Loader=yaml.CSafeLoader), Grammar)


class SizeName(msgspec.Struct, frozen=True, kw_only=True):
    prefix: str
    family: str
    sub_family: str
    vcpus: int
    constrained_vcpus: int | None
    features: tuple[str, ...]
    generation_token: str
    """A generation inside the features, as G5 in ND128isrG5_GB300_v6."""
    tokens: tuple[str, ...]
    """What stands between underscores, in the order of the name; the next fields sort it by kind."""
    accelerator: str
    fabric: str
    memory: str
    version: int | None
    promo: bool
    warnings: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name in Azure's own spelling."""
        return "".join(text for text, _ in self.explain())

    @property
    def rdma_by_name(self) -> bool:
        return "r" in self.features

    @property
    def is_ordinal(self) -> bool:
        """Old series number their sizes; the number is not a count of vCPUs."""
        version = "" if self.version is None else f"_v{self.version}"
        return not self.features and f"{self.family}{self.sub_family}{version}" in load_grammar().ordinal

    @property
    def usable_vcpus(self) -> int:
        return self.vcpus if self.constrained_vcpus is None else self.constrained_vcpus

    def explain(self) -> list[tuple[str, str]]:
        """Each piece of the name and what it means; the pieces joined are the name."""
        grammar = load_grammar()
        parts = [(f"{self.prefix}_", grammar.prefixes[self.prefix])]
        parts.append((self.family, grammar.families.get(self.family, "a family this grammar does not know")))
        if self.sub_family:
            parts.append((self.sub_family, _sub_family_meaning(grammar, self.family, self.sub_family)))
        counts = f"number {self.vcpus} of an old series, not a vCPU count" if self.is_ordinal else f"{self.vcpus} vCPUs"
        parts.append((str(self.vcpus), counts))
        if self.constrained_vcpus is not None:
            parts.append(
                (
                    f"-{self.constrained_vcpus}",
                    f"constrained to {self.constrained_vcpus} vCPUs; memory, NICs and NUMA nodes of the full size",
                )
            )
        parts += [
            (letter, grammar.features.get(letter, "a feature this grammar does not know")) for letter in self.features
        ]
        if self.generation_token:
            parts.append((self.generation_token, f"hardware generation {self.generation_token[1:]} within the series"))
        parts += [(f"_{token}", self._token_meaning(grammar, token)) for token in self.tokens]
        if self.version is not None:
            parts.append((f"_v{self.version}", f"version {self.version} of the series"))
        if self.promo:
            parts.append(("_Promo", "sold at a promotional price"))
        return parts

    def _token_meaning(self, grammar: Grammar, token: str) -> str:
        if token == self.accelerator:
            known = grammar.accelerators.get(token)
            return f"accelerator: {known.meaning}" if known else "an accelerator this grammar does not know"
        if token == self.fabric:
            return grammar.fabrics[token]
        if token == self.memory:
            return f"memory capacity: about {token} TiB"
        return grammar.tokens.get(token, "a token this grammar does not know")


def parse_size_name(text: str) -> SizeName:
    """Take a name apart. Case does not matter, and `Standard_` may be left out."""
    wanted = text.strip()
    parsed = _parse(wanted)
    if parsed is not None:
        return parsed
    repaired = wanted
    for pattern, replacement in _REPAIRS:
        repaired = pattern.sub(replacement, repaired)
    parsed = _parse(repaired) if repaired != wanted else None
    if parsed is None:
        raise UnknownNameError(
            f"{text!r} is not an Azure VM-size name",
            remedy="A name reads Standard_<family><vCPUs>[-<constrained>]<features>[_<accelerator>][_v<version>], "
            "as in Standard_ND96isr_H100_v5 or Standard_HB120-96rs_v3.",
        )
    warning = f"{wanted!r} does not follow the grammar; it was read as {parsed.name}"
    return msgspec.structs.replace(parsed, warnings=(warning, *parsed.warnings))


def _parse(text: str) -> SizeName | None:
    match = _NAME.fullmatch(text)
    if match is None:
        return None
    tokens = tuple(_spell_token(token) for token in match["tokens"].split("_") if token)
    if any(_hides_features(token) for token in tokens):
        return None
    kinds = {"accelerator": "", "fabric": "", "memory": ""}
    for token in tokens:
        kind = _token_kind(token)
        if kind and kinds[kind]:
            return None
        if kind:
            kinds[kind] = token
    parsed = SizeName(
        prefix=(match["prefix"] or "Standard").capitalize(),
        family=match["family"].upper(),
        sub_family=match["sub_family"].upper(),
        vcpus=int(match["vcpus"]),
        constrained_vcpus=int(match["constrained"]) if match["constrained"] else None,
        features=tuple(match["features"].lower()),
        generation_token=(match["generation"] or "").upper(),
        tokens=tokens,
        accelerator=kinds["accelerator"],
        fabric=kinds["fabric"],
        memory=kinds["memory"],
        version=int(match["version"]) if match["version"] else None,
        promo=bool(match["promo"]),
    )
    return msgspec.structs.replace(parsed, warnings=tuple(_find_oddities(parsed)))


def _spell_token(token: str) -> str:
    """Azure writes accelerators and fabrics in capitals and other words in small letters."""
    return token.lower() if token.lower() in load_grammar().tokens else token.upper()


def _hides_features(token: str) -> bool:
    """Whether feature letters may be lost in this token: HB368_336rsv5, HB120_rs_v3, HB120_rsv3, ND96_H100isr_v5."""
    grammar = load_grammar()
    if token in grammar.tokens or token in grammar.fabrics or token in grammar.accelerators:
        return False
    if re.match(r"\d+[A-Z]", token):
        return True
    rest = max((token.removeprefix(known) for known in grammar.accelerators), key=lambda rest: len(token) - len(rest))
    letters = re.sub(r"V\d+$", "", rest).lower()
    return bool(letters) and letters.isalpha() and all(letter in grammar.features for letter in letters)


def _token_kind(token: str) -> str:
    grammar = load_grammar()
    if token.isdigit():
        return "memory"
    if token in grammar.fabrics:
        return "fabric"
    if token in grammar.accelerators or _ACCELERATOR.fullmatch(token):
        return "accelerator"
    return ""


def _find_oddities(name: SizeName) -> list[str]:
    grammar = load_grammar()
    odd = []
    if name.family not in grammar.families:
        odd.append(f"unknown family {name.family}")
    unknown = [letter for letter in name.features if letter not in grammar.features]
    odd += [f"unknown feature {letter!r}" for letter in unknown]
    odd += [
        f"the feature {letter!r} is given twice"
        for letter in sorted(set(name.features))
        if name.features.count(letter) > 1
    ]
    if name.constrained_vcpus is not None and name.constrained_vcpus >= name.vcpus:
        odd.append(f"constrained to {name.constrained_vcpus} vCPUs, which is not below the full {name.vcpus}")
    known = grammar.accelerators.get(name.accelerator)
    if name.accelerator and known is None:
        odd.append(f"unknown accelerator {name.accelerator}")
    if known and known.arm and "p" not in name.features:
        odd.append(f"the CPU is Arm ({name.accelerator} brings Grace) although the name has no p")
    odd += [
        f"unknown token {token!r}" for token in name.tokens if not _token_kind(token) and token not in grammar.tokens
    ]
    return odd


def _sub_family_meaning(grammar: Grammar, family: str, sub_family: str) -> str:
    both = grammar.sub_families.get(family + sub_family)
    return both or grammar.sub_families.get(sub_family, "a sub-family this grammar does not know")
