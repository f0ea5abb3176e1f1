"""Fabric and NVLink domain as node labels, through node-feature-discovery: `--node-features-file`.

Affinity, topology spreading and Kueue see nodes, not devices. The driver could label its node itself, but would need
the right to write Nodes for it, and with that right a broken node can rewrite any other. So it writes a file into
NFD's `features.d`, and NFD, which has the right anyway, makes labels of it.

The labels stand in NFD's own namespace, which nfd-master never denies, under names that begin with `fishplate.`.
"""

import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path

from fishplate.errors import OutsideError
from fishplate.node.metadata.facts import NodeFacts

LABEL_PREFIX = "feature.node.kubernetes.io/fishplate."
_MOST_CHARACTERS = 63  # of a label's value
_LEGAL = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?\Z")
_HASHED = 16
_HEADER = "# Written by fishplate driver; changed and removed by it.\n"
_MOST_BYTES = 64 * 1024


def plan_labels(facts: NodeFacts, *, prefix: str = LABEL_PREFIX) -> dict[str, str]:
    """Two nodes have equal labels where they share the fabric, or the NVLink domain, and only there."""
    known = {"fabric": facts.fabric, "nvlink-domain": facts.nvlink_domain}
    return {f"{prefix}{name}": label_value(text) for name, text in known.items() if text}


def label_value(text: str) -> str:
    """The text itself where it is a legal value; else as much of it as is legal, and a digest of the whole."""
    if len(text) <= _MOST_CHARACTERS and _LEGAL.match(text):
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_HASHED]
    head = re.sub(r"[^A-Za-z0-9]+", "-", text)[: _MOST_CHARACTERS - _HASHED - 1].strip("-")
    return f"{head}-{digest}" if head else digest


def render_features(labels: Mapping[str, str]) -> str:
    return _HEADER + "".join(f"{name}={value}\n" for name, value in sorted(labels.items()))


class FeatureFile:
    """One file of ours in NFD's directory. Raises OutsideError where it cannot be written."""

    def __init__(self, path: Path, *, prefix: str = LABEL_PREFIX) -> None:
        self.path = path
        self._prefix = prefix

    def update(self, facts: NodeFacts) -> bool:
        """Bring the file up to date; whether anything was written or removed.

        Before the first answer the file stays as the last run left it: labels that vanish at every start of the driver
        would make schedulers see a node leave its fabric.
        """
        if not facts.state.answered:
            return False
        labels = plan_labels(facts, prefix=self._prefix)
        if not labels:
            return self.remove()
        wanted = render_features(labels).encode()
        try:
            if self._read() == wanted:
                return False
            self._write(wanted)
        except OSError as error:
            raise self._failure("cannot write", error) from error
        return True

    def remove(self) -> bool:
        """Take the labels back; whether there was a file."""
        try:
            self.path.unlink()
        except FileNotFoundError:
            return False
        except OSError as error:
            raise self._failure("cannot remove", error) from error
        return True

    def _read(self) -> bytes | None:
        try:
            with self.path.open("rb") as file:
                return file.read(_MOST_BYTES)
        except FileNotFoundError:
            return None

    def _write(self, content: bytes) -> None:
        # NFD passes over names that begin with a dot, so it never reads a half-written file.
        temporary = self.path.with_name(f".{self.path.name}.new")
        temporary.unlink(missing_ok=True)  # of a run that was killed
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self.path)

    def _failure(self, what: str, error: OSError) -> OutsideError:
        remedy = "--node-features-file names a file in NFD's directory features.d, which must be mounted"
        return OutsideError(f"{what} the node features: {error.strerror}", where=str(self.path), remedy=remedy)
