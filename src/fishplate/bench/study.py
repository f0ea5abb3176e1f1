"""Reads and writes results files, and whatever else holds runs: logs, JSON of the tests, published studies.

One file is one study. What a file is, its first bytes tell: `{` is JSON (ours, nccl-tests' or perftest's), anything
else is a log. Logs are streamed; JSON has to be read whole and is therefore limited.
"""

from collections.abc import Sequence
from importlib import resources
from pathlib import Path

import msgspec

from fishplate.bench.json_results import parse_nccl_tests, parse_perftest
from fishplate.bench.lines import Readable
from fishplate.bench.log import parse_log
from fishplate.bench.results import SCHEMA, Context, Run, Study, Unread
from fishplate.errors import DocumentError, UnknownNameError

MAX_JSON = 64 * 1024 * 1024
_MAX_SHOWN = 5


def read_runs(stream: Readable, where: str, *, label: str = "") -> Study:
    """Whatever this stream holds, as a study; a results file keeps its own labels unless one is given."""
    head = stream.read(64)
    rest = _Joined(head, stream)
    if head.lstrip()[:1] != b"{":
        runs, unread = parse_log(rest, where)
        return Study(runs=label_runs(runs, label or _stem(where)), unread=unread)
    data = rest.read(MAX_JSON + 1)
    if len(data) > MAX_JSON:
        raise DocumentError(f"JSON of more than {MAX_JSON >> 20} MiB", where=where, remedy="give the log instead")
    return _read_json(data, where, label)


def _read_json(data: bytes, where: str, label: str) -> Study:
    if SCHEMA.partition("/")[0].encode() in data[:4096]:
        study = decode_study(data, where)
        runs = tuple(msgspec.structs.replace(run, label=label or run.label) for run in study.runs)
        return msgspec.structs.replace(study, runs=runs)
    text = data.decode("utf-8", "replace")
    if '"results"' in text and '"config"' in text:
        run = parse_nccl_tests(data, where)
    elif "test_info" in text or "MsgSize" in text:
        run = parse_perftest(text, where)
    else:
        raise DocumentError(
            "JSON of an unknown kind",
            where=where,
            remedy="known are our results files, nccl-tests' -J and perftest's --out_json",
        )
    return Study(runs=label_runs((run,), label or _stem(where)))


def decode_study(data: bytes, where: str) -> Study:
    try:
        study = msgspec.json.decode(data, type=Study)
    except msgspec.DecodeError as error:
        raise DocumentError(
            f"not a results file of the form {SCHEMA}: {error}", where=where, remedy="see docs/bench.md for its form"
        ) from error
    if not study.runs:
        raise DocumentError("a results file without runs", where=where, remedy="nothing to judge here")
    return study


def encode_study(study: Study) -> bytes:
    return msgspec.json.format(msgspec.json.encode(study), indent=2) + b"\n"


def join_studies(studies: Sequence[Study], *, name: str = "", taken: str = "") -> Study:
    """One study of several files; what could not be read is added up."""
    shown = [one for study in studies for one in study.unread.shown]
    return Study(
        name=name or next((study.name for study in studies if study.name), ""),
        taken=taken or next((study.taken for study in studies if study.taken), ""),
        notes=tuple(dict.fromkeys(note for study in studies for note in study.notes)),
        runs=tuple(run for study in studies for run in study.runs),
        unread=Unread(
            garbled=sum(study.unread.garbled for study in studies),
            other=sum(study.unread.other for study in studies),
            shown=tuple(shown[:_MAX_SHOWN]),
        ),
    )


def place_runs(study: Study, context: Context) -> Study:
    """Adds what the person said. Of a results file, which knows already, only what is said anew changes."""
    default = Context()
    said = {
        name: value for name in Context.__struct_fields__ if (value := getattr(context, name)) != getattr(default, name)
    }
    runs = [msgspec.structs.replace(run, context=msgspec.structs.replace(run.context, **said)) for run in study.runs]
    return msgspec.structs.replace(study, runs=tuple(runs))


def label_runs(runs: tuple[Run, ...], stem: str) -> tuple[Run, ...]:
    """Runs of one log that were called alike are repeats and share a label; others are numbered."""
    seen: dict[object, str] = {}
    labelled = []
    for run in runs:
        settings = msgspec.structs.replace(run.settings, checked=None)
        kind = (run.tool, run.test, msgspec.json.encode(settings), len(run.ranks), len(run.hosts), run.network.hcas)
        name = seen.setdefault(kind, stem if not seen else f"{stem}#{len(seen) + 1}")
        labelled.append(msgspec.structs.replace(run, label=name))
    return tuple(labelled)


# -- published studies ---------------------------------------------------------------------------------------------


def published_names() -> tuple[str, ...]:
    folder = resources.files("fishplate.bench").joinpath("data", "published")
    return tuple(sorted(file.name.removesuffix(".json") for file in folder.iterdir() if file.name.endswith(".json")))


def load_published(name: str) -> Study:
    if name not in published_names():
        raise UnknownNameError(
            f"no published study is called {name!r}",
            nearest=published_names(),
            remedy=f"there are: {', '.join(published_names())}",
        )
    file = resources.files("fishplate.bench").joinpath("data", "published", f"{name}.json")
    return decode_study(file.read_bytes(), f"published/{name}")


class _Joined:
    """A stream whose beginning was read already; standard input cannot be rewound."""

    def __init__(self, head: bytes, rest: Readable) -> None:
        self._head = head
        self._rest = rest

    def read(self, size: int = -1, /) -> bytes:
        if not self._head:
            return self._rest.read(size)
        head, self._head = self._head, b""
        return head + self._rest.read(max(0, size - len(head)) if size >= 0 else -1)


def _stem(where: str) -> str:
    return Path(where).name.partition(".")[0] if where not in ("-", "<stdin>") else "stdin"
