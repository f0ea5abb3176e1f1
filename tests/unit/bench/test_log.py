import io
import subprocess
import sys
from collections.abc import Iterator

from fishplate.bench import collective_log
from fishplate.bench.log import parse_log
from fishplate.bench.table import parse_header, parse_row
from tests.unit.bench.formats import GIB, Job, Table, channels, devices, header, measure, row, write_job

# Reads a log that is made while it is read, and prints the most memory that took, in MB.
READER = """
import sys
from fishplate.bench.log import parse_log
class Made:
    def __init__(self, line, count): self.line, self.count = line * 100, count // 100
    def read(self, size=-1):
        self.count -= 1
        return self.line if self.count >= 0 else b""
head = sys.stdin.buffer.read()
class Both:
    def __init__(self): self.head, self.rest = head, Made(sys.argv[1].encode() + b"\\n", int(sys.argv[2]))
    def read(self, size=-1):
        head, self.head = self.head, b""
        return head or self.rest.read(size)
runs, unread = parse_log(Both(), "log")
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(int(peak.split()[1]) / 1024, len(runs[0].rows), runs[0].rows_left_out, unread.other)
"""


def lines_of(text: list[str]) -> io.BytesIO:
    return io.BytesIO("\n".join(text).encode())


def read_many(line: str, count: int) -> tuple[float, list[int]]:
    start = "\n".join(write_job(Job(devices(2, 1), lambda _size: 56.0))[:11]).encode() + b"\n"
    done = subprocess.run(
        [sys.executable, "-c", READER, line, str(count)], input=start, capture_output=True, check=True
    )
    memory, *counts = done.stdout.decode().split()
    return float(memory), [int(count) for count in counts]


def kinds() -> Iterator[str]:
    half = measure(GIB, 56.0, "all_reduce", 2, "N/A")
    yield row(Table(), GIB, (half, half))
    yield channels("nccl-test-worker-0", 1, "NET/IB/%d/GDRDMA")[0]
    yield "somebody else's line"


def test_memory_does_not_grow_with_the_log() -> None:
    for line in kinds():
        few, _ = read_many(line, 30_000)
        many, (rows, left_out, other) = read_many(line, 90_000)
        assert many - few < 5, line
        assert rows <= collective_log.MAX_ROWS
        assert rows + left_out in (0, 90_000)
        assert other in (0, 90_000)


def test_rows_beyond_the_limit_are_counted() -> None:
    _, (rows, left_out, _) = read_many(next(kinds()), 30_000)
    assert (rows, left_out) == (collective_log.MAX_ROWS, 30_000 - collective_log.MAX_ROWS)


def test_header_names_decide_what_a_column_is() -> None:
    layout = parse_header("# size busbw count type redop root time algbw #wrong")
    assert not isinstance(layout, str)
    plain = parse_header(header(Table())[1])
    assert plain is not None
    assert not isinstance(plain, str)
    half = measure(GIB, 56.0, "all_reduce", 2, "0")
    found = parse_row(row(Table(), GIB, (half, half)), plain, 1)
    assert found is not None
    assert found.busbw == 56.0


def test_a_row_with_a_token_too_few_or_too_many_is_no_row() -> None:
    layout = parse_header(header(Table())[1])
    assert layout is not None
    assert not isinstance(layout, str)
    half = measure(GIB, 56.0, "all_reduce", 2, "0")
    text = row(Table(), GIB, (half, half))
    assert parse_row(text.rsplit(maxsplit=1)[0], layout, 1) is None
    assert parse_row(f"{text} 7", layout, 1) is None
    assert parse_row(text.rsplit(maxsplit=4)[0], layout, 1) is None


def test_nan_and_negative_numbers_are_no_results() -> None:
    job = write_job(Job(devices(2, 1), lambda _size: 56.0, low=GIB, high=GIB))
    for word in ("nan", "inf", "-56.00"):
        runs, unread = parse_log(lines_of([line.replace(" 56.00", f" {word}") for line in job]), "log")
        assert (runs[0].rows, unread.garbled) == ((), 1)


def test_two_tagged_ranks_that_print_tables_are_two_runs() -> None:
    job = write_job(Job(devices(1, 1), lambda _size: 0.0))
    both = [f"[1,{rank}]<stdout>:{line}" for line in job for rank in (0, 1)]
    runs, _ = parse_log(lines_of(both), "log")
    assert [len(run.rows) for run in runs] == [5, 5]
