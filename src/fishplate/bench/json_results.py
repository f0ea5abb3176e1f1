"""Reads the JSON of nccl-tests (`-J FILE`) and of perftest (`--out_json`).

nccl-tests writes its whole environment into the file; of that only what concerns the benchmark is kept, scrubbed.
Perftest does not say in which unit its bandwidths are, and some releases leave texts without quotes, so that the file
is no JSON. The unit follows from message size and message rate, which are always in bytes and millions a second.
"""

import re

import msgspec

from fishplate.bench.busbw import name_test
from fishplate.bench.perftest_log import GBPS_PER_MIB
from fishplate.bench.results import Evidence, Figure, Half, Rank, Row, Run, Settings
from fishplate.bench.scrub import keep_environment, scrub
from fishplate.errors import DocumentError

_ROUNDING = 5e-4  # JSON numbers come with more digits than the table; they still pass through float
_UNIT_SLACK = 0.02
_LOOSE = re.compile(r"^\s*\"?([A-Za-z_][\w ]*?)\"?\s*:\s*\"?([^\",{}]*?)\"?\s*,?\s*$", re.MULTILINE)


class _Half(msgspec.Struct):
    time: float
    alg_bw: float
    bus_bw: float
    nwrong: float | None = None


class _Result(msgspec.Struct):
    size: int
    count: int = 0
    type: str = ""
    redop: str = ""
    root: int | str = -1
    out_of_place: _Half | None = None
    in_place: _Half | None = None


class _Device(msgspec.Struct):
    rank: int
    hostname: str = ""
    pid: int = 0
    device: int = 0
    device_hex: str | int = ""
    device_info: str = ""


class _Config(msgspec.Struct):
    nthreads: int | None = None
    ngpus: int | None = None
    minimum_bytes: int | None = None
    maximum_bytes: int | None = None
    warmup_iters: int | None = None
    iters: int | None = None
    iterations: int | None = None
    agg_iters: int | None = None
    validation: int | None = None
    graph: int | None = None
    devices: list[_Device] = []


class _Bounds(msgspec.Struct):
    count: int = 0


class _Average(msgspec.Struct):
    bandwidth: float
    okay: bool | str = "unchecked"


class _Document(msgspec.Struct):
    results: list[_Result]
    config: _Config = msgspec.field(default_factory=_Config)
    version: str = ""
    args: list[str] = []
    env: list[str] = []
    nccl_version: str | int = ""
    out_of_bounds: _Bounds | None = None
    average_bus_bandwidth: _Average | None = None
    errors: list[object] = []
    end_time: object = None


def parse_nccl_tests(data: bytes, where: str) -> Run:
    try:
        document = msgspec.json.decode(data, type=_Document)
    except msgspec.DecodeError as error:
        raise DocumentError(
            f"not the JSON that nccl-tests writes: {error}", where=where, remedy="give the file that -J wrote, whole"
        ) from error
    config = document.config
    program = document.args[0] if document.args else ""
    average = document.average_bus_bandwidth
    failures = [Evidence(line=0, text=scrub(str(error))) for error in document.errors[:5]]
    if average is not None and average.okay is False:
        failures.append(Evidence(line=0, text=f"average bus bandwidth {average.bandwidth:g}: not okay"))
    return Run(
        label="",
        tool="rccl-tests" if "rccl" in document.version else "nccl-tests",
        test=name_test(program),
        version=scrub(document.version),
        source=where,
        settings=Settings(
            min_bytes=config.minimum_bytes,
            max_bytes=config.maximum_bytes,
            iterations=config.iters if config.iters is not None else config.iterations,
            warmup=config.warmup_iters,
            aggregate=config.agg_iters,
            checked=None if config.validation is None else bool(config.validation),
            graph=None if config.graph is None else bool(config.graph),
            gpus_per_process=config.ngpus,
            threads=config.nthreads,
        ),
        ranks=tuple(_rank(device) for device in config.devices),
        rows=tuple(_row(result) for result in document.results if result.out_of_place or result.in_place),
        average=average.bandwidth if average else None,
        out_of_bounds=document.out_of_bounds.count if document.out_of_bounds else None,
        complete=average is not None,
        failures=tuple(failures),
        environment=keep_environment(document.env),
    )


def _rank(device: _Device) -> Rank:
    return Rank(
        rank=device.rank,
        host=scrub(device.hostname),
        pid=device.pid,
        device=device.device,
        bus=scrub(str(device.device_hex)),
        gpu=scrub(device.device_info),
    )


def _row(result: _Result) -> Row:
    return Row(
        line=0,
        bytes=result.size,
        count=result.count,
        type=result.type,
        redop=result.redop,
        root=result.root if isinstance(result.root, int) and result.root >= 0 else None,
        out_of_place=_half(result.out_of_place),
        in_place=_half(result.in_place),
    )


def _half(half: _Half | None) -> Half | None:
    if half is None:
        return None
    return Half(
        time_us=half.time,
        algbw=half.alg_bw,
        busbw=half.bus_bw,
        wrong=half.nwrong,
        time_slack=_ROUNDING,
        busbw_slack=_ROUNDING,
    )


# -- perftest ------------------------------------------------------------------------------------------------------


def parse_perftest(text: str, where: str) -> Run:
    """One test; the fields are read line by line, because not every release writes valid JSON."""
    fields = {name.strip().replace(" ", "_"): value.strip() for name, value in _LOOSE.findall(_one_field_a_line(text))}
    size, rate, average = (_number(fields.get(name, "")) for name in ("MsgSize", "MsgRate", "BW_average"))
    latency = _number(fields.get("t_avg", ""))
    if size is None or (average is None and latency is None):
        raise DocumentError(
            "not the JSON that perftest writes: it has no MsgSize, or neither BW_average nor t_avg",
            where=where,
            remedy="give the file that --out_json_file wrote, whole",
        )
    test = _test_name(fields.get("test", ""), bandwidth=average is not None)
    if average is None or latency is not None:
        figures = (Figure(metric=test, value=latency or 0.0, unit="us", bytes=int(size)),)
    else:
        figures = (_bandwidth(test, int(size), rate, average, where),)
    return Run(
        label="",
        tool="perftest",
        test=test,
        source=where,
        settings=Settings(
            device=fields.get("Device", ""),
            link=fields.get("Link_type", ""),
            iterations=int(_number(fields.get("n_iterations", "")) or 0) or None,
            gpu_memory=fields.get("use_cuda", "OFF").upper() not in ("", "OFF", "0", "FALSE"),
            bidirectional="Bidirectional" in fields.get("test", ""),
        ),
        figures=figures,
    )


def _bandwidth(test: str, size: int, rate: float | None, average: float, where: str) -> Figure:
    carried = size * (rate or 0.0) * 8 / 1e3
    for scale in (1.0, GBPS_PER_MIB):
        if carried and abs(average * scale - carried) <= _UNIT_SLACK * carried:
            return Figure(metric=test, value=average * scale, unit="Gb/s", bytes=size)
    raise DocumentError(
        f"the unit of BW_average {average:g} cannot be told: MsgSize and MsgRate give {carried:.2f} Gb/s",
        where=where,
        remedy="give the text that perftest printed; its header names the unit",
    )


def _one_field_a_line(text: str) -> str:
    return re.sub(r"([{},])", r"\1\n", text)


def _number(text: str) -> float | None:
    try:
        return float(text) if re.fullmatch(r"[\d.]+(?:[eE][+-]?\d+)?", text) else None
    except ValueError:
        return None


def _test_name(title: str, *, bandwidth: bool) -> str:
    verb = next(
        (name for word, name in (("Write", "ib_write"), ("Read", "ib_read"), ("Send", "ib_send")) if word in title),
        "ib",
    )
    return f"{verb}_{'bw' if bandwidth else 'lat'}"
