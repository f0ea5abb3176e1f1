"""What NCCL and RCCL say with NCCL_DEBUG=INFO: which NICs, which paths, GPUDirect or not, which errors.

A log of a large job is mostly such lines, millions of them. Nothing is kept per line: counts, sets of small numbers,
and the first few lines of each kind that a cause may have to show. The texts are those of src/transport/net_ib*,
src/graph/paths.cc, src/init.cc and src/misc/param.cc of NVIDIA/nccl, 2.4 to 2.30; RCCL prints the same.
"""

import re
from collections import Counter, defaultdict

from fishplate.bench.results import Evidence, Hca, Network, Path
from fishplate.bench.scrub import scrub, scrub_setting
from fishplate.bench.signs import NCCL, NCCL_MARKS

MAX_EVIDENCE = 3
_MAX_KINDS = 64

_HEAD = re.compile(r"NCCL (?:INFO|WARN|ERROR|VERSION|TRACE)\b")
_CHANNEL = re.compile(
    r"Channel (\d+)(?:/\d+)? : \d+\[[^\]]*\] -> \d+\[[^\]]*\](?: \[(send|receive)\])? "
    r"via (NET/[^/\s]+|P2P|SHM|direct)(?:/(\d+))?(\S*)"
)
_USING = re.compile(r"NET/IB\w* : Using (\[0\].*?)(?:;|\s*\[(?:RO|send/recv)\]|$)")
_DEVICE = re.compile(r"\[\d+\]([^\s:/\[\]]+):(\d+)(?::[^/\s]*)?/(\w+)")
_MERGED = re.compile(r"Made virtual device \[(\d+)\] name=\S+ speed=\d+ ndevs=(\d+)")
_NETWORK = re.compile(r"Using network (\S+)")
_COLL = re.compile(r"\b(\d+) coll channels")
_RANKS = re.compile(r"\bnranks (\d+)", re.IGNORECASE)
_NODES = re.compile(r"\bnNodes (\d+)")
_SETTING = re.compile(r"\b((?:NCCL|RCCL)_\w+) set (?:by environment )?to (\S+?)\.?(?:\s|$)")
_VERSION = re.compile(r"\b[NR]CCL version[ :]+(\d[\w.+-]*)")
_COMPLETION = re.compile(r"Got completion .*?(?:with (?:error|status=)\s*|\bstatus=)(?:IBV_WC_\w+\()?(\d+)\b")


class NetworkReader:
    """Takes lines one by one; `finish` gives what they said together."""

    def __init__(self) -> None:
        self.lines = 0
        self.signs: dict[str, list[Evidence]] = defaultdict(list)
        self._channels: dict[str, set[int]] = defaultdict(set)
        self._path_lines: Counter[str] = Counter()
        self._gdr: Counter[str] = Counter()
        self._devices: dict[str, set[int]] = defaultdict(set)
        self._path_evidence: dict[str, list[Evidence]] = defaultdict(list)
        self._hcas: dict[tuple[str, int], Hca] = {}
        self._merged: dict[str, int] = {}
        self._networks: dict[str, None] = {}
        self._settings: dict[str, str] = {}
        self._errors: Counter[str] = Counter()
        self._warnings = 0
        self._version = ""
        self._coll: int | None = None
        self._ranks: int | None = None
        self._nodes: int | None = None

    def read(self, number: int, text: str) -> None:
        """A line that `speaks_nccl`."""
        self.lines += 1
        if " via " in text and (found := _CHANNEL.search(text)):
            self._read_channel(number, text, found)
            return
        if "NCCL WARN" in text:
            self._warnings += 1
        self._read_facts(number, text)
        if any(mark in text for mark in NCCL_MARKS):
            for kind, pattern in NCCL:
                if pattern.search(text):
                    self._show(kind, number, text)

    def take_over(self, other: "NetworkReader") -> None:
        """What another reader saw, of the same run: workers may log elsewhere than the launcher."""
        self.lines += other.lines
        for name, channels in other._channels.items():
            self._channels[name] |= channels
            self._devices[name] |= other._devices[name]
            self._path_evidence[name] = [*self._path_evidence[name], *other._path_evidence[name]][:MAX_EVIDENCE]
        self._path_lines.update(other._path_lines)
        self._gdr.update(other._gdr)
        self._errors.update(other._errors)
        self._hcas = self._hcas | other._hcas
        self._merged |= other._merged
        self._networks |= other._networks
        self._settings = other._settings | self._settings
        self._warnings += other._warnings
        self._version = self._version or other._version
        self._coll = self._coll if self._coll is not None else other._coll
        self._ranks = max((one for one in (self._ranks, other._ranks) if one is not None), default=None)
        self._nodes = max((one for one in (self._nodes, other._nodes) if one is not None), default=None)
        for kind, lines in other.signs.items():
            self.signs[kind] = [*self.signs[kind], *lines][:MAX_EVIDENCE]

    def finish(self) -> Network:
        return Network(
            lines=self.lines,
            version=self._version,
            networks=tuple(self._networks),
            hcas=tuple(self._hcas.values()),
            merged=dict(self._merged),
            paths=tuple(self._path(name) for name in sorted(self._channels)),
            coll_channels=self._coll,
            ranks=self._ranks,
            nodes=self._nodes,
            settings=dict(self._settings),
            errors=dict(self._errors),
            warnings=self._warnings,
            signs={kind: tuple(lines) for kind, lines in self.signs.items()},
        )

    def _path(self, name: str) -> Path:
        return Path(
            transport=name,
            channels=len(self._channels[name]),
            lines=self._path_lines[name],
            gdr=self._gdr[name],
            devices=tuple(sorted(self._devices[name])),
            evidence=tuple(self._path_evidence[name]),
        )

    def _read_channel(self, number: int, text: str, found: re.Match[str]) -> None:
        name = _plain_transport(found[3])
        if name not in self._channels and len(self._channels) >= _MAX_KINDS:
            return
        if len(self._channels[name]) < 4096:
            self._channels[name].add(int(found[1]))
        self._path_lines[name] += 1
        if found[4] and name.startswith("NET/") and len(self._devices[name]) < 4096:
            self._devices[name].add(int(found[4]))
        self._gdr[name] += "GDRDMA" in found[5]
        shown = self._path_evidence[name]
        if len(shown) < MAX_EVIDENCE:
            shown.append(Evidence(line=number, text=scrub(text.strip())))

    def _read_facts(self, number: int, text: str) -> None:
        if "Using [" in text and (found := _USING.search(text)):
            self._show("hcas", number, text)
            for name, port, layer in _DEVICE.findall(found[1]):
                if len(self._hcas) < 4096:
                    self._hcas[name, int(port)] = Hca(name=name, port=int(port), layer=layer)
        elif "Using network" in text and (found := _NETWORK.search(text)):
            self._networks[found[1]] = None
            self._show(f"network-{found[1]}"[:60], number, text)
        elif " set " in text and (found := _SETTING.search(text)):
            if len(self._settings) < 256:
                self._settings[found[1]] = scrub_setting(found[1], found[2])
            self._show(f"set-{found[1]}"[:60], number, text)
        elif "Got completion" in text and (found := _COMPLETION.search(text)):
            self._errors[found[1]] += 1
            self._show(f"status-{found[1]}"[:60], number, text)
        elif "Made virtual" in text and (found := _MERGED.search(text)):
            if int(found[2]) > 1 and len(self._merged) < 4096:
                self._merged[found[1]] = int(found[2])
        elif "version" in text and (found := _VERSION.search(text)):
            self._version = found[1]
        else:
            self._read_communicator(text)

    def _read_communicator(self, text: str) -> None:
        if "coll channels" in text and (found := _COLL.search(text)):
            self._coll = int(found[1])
        if "anks" not in text:
            return
        if found := _RANKS.search(text):
            self._ranks = max(self._ranks or 0, int(found[1]))
        if found := _NODES.search(text):
            self._nodes = max(self._nodes or 0, int(found[1]))

    def _show(self, kind: str, number: int, text: str) -> None:
        if kind not in self.signs and len(self.signs) >= _MAX_KINDS:
            return
        if len(self.signs[kind]) < MAX_EVIDENCE:
            self.signs[kind].append(Evidence(line=number, text=scrub(text.strip())))


def speaks_nccl(text: str) -> bool:
    return "NCCL" in text and _HEAD.search(text) is not None


def _plain_transport(name: str) -> str:
    """`NET/IBext_v11` is InfiniBand through an external plugin: the same path."""
    return "NET/IB" if name.startswith("NET/IB") else name
