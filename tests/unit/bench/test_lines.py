import io
import subprocess
import sys

import pytest

from fishplate.bench.lines import MAX_LINE, Line, read_lines, strip_prefixes

ROW = "   536870912     134217728     float     sum      -1   9587.1   56.00   56.00    N/A"


def read(data: bytes) -> list[Line]:
    return list(read_lines(io.BytesIO(data)))


@pytest.mark.parametrize(
    ("prefix", "source", "rank"),
    [
        ("[pod/a-launcher-x/launcher] ", "a-launcher-x/launcher", ""),
        ("2026-03-01T12:13:14.123456789Z ", "", ""),
        ("2026-03-01T12:13:14+01:00 stderr P ", "", ""),
        ("[1,17]<stderr>:", "", "17"),
        ("[1,17]<stdout>: ", "", "17"),
        ("Sun Mar  1 12:13:14 2026<stdout>:", "", ""),
        ("3: ", "", "3"),
        ("[3] ", "", "3"),
        ("a-worker-12 worker ", "a-worker-12/worker", ""),
        ("team a-launcher launcher │ ", "team/a-launcher/launcher", ""),
        ("[pod/a/b] 2026-03-01T12:13:14Z [1,2]<stdout>:", "a/b", "2"),
    ],
)
def test_prefixes_come_off_and_say_where_a_line_came_from(prefix: str, source: str, rank: str) -> None:
    found = strip_prefixes(1, prefix + ROW)
    assert (found.text.strip(), found.source, found.rank) == (ROW.strip(), source, rank)


@pytest.mark.parametrize(
    "text",
    [
        ROW,
        "# Avg bus bandwidth    : 56.01",
        "nccl-test-worker-0:77:90 [0] NCCL INFO Using network IB",
        "8: of something",
        "[0] free",
    ],
)
def test_lines_without_a_prefix_stay_as_they_are(text: str) -> None:
    assert strip_prefixes(1, text) == Line(1, text)


def test_colours_and_carriage_returns_come_off() -> None:
    (line,) = read(b"\x1b[1;33m# Avg\x1b[0m bus\x1b]8;;http://x\x07\r\n")
    assert line.text == "# Avg bus"


def test_a_line_without_end_is_cut_and_marked_once() -> None:
    lines = read(b"a" * (5 * 1024 * 1024) + b"\nnext\n")
    assert [(len(line.text), line.cut) for line in lines] == [(MAX_LINE, True), (4, False)]


def test_a_line_without_end_does_not_fill_the_memory() -> None:
    """As a process of its own: the most memory that reading 4 and 64 MiB without a line end takes."""
    script = (
        "import sys\n"
        "from fishplate.bench.lines import read_lines\n"
        "class Endless:\n"
        "    left = int(sys.argv[1])\n"
        "    def read(self, size=-1):\n"
        "        self.left -= 1\n"
        "        return b'x' * 1048576 if self.left >= 0 else b''\n"
        "assert sum(1 for _ in read_lines(Endless())) == 1\n"
        "print(next(line for line in open('/proc/self/status') if line.startswith('VmHWM')).split()[1])\n"
    )
    few, many = (
        int(subprocess.run([sys.executable, "-c", script, mib], capture_output=True, check=True).stdout)
        for mib in ("4", "64")
    )
    assert many - few < 16 * 1024  # kB


def test_bytes_that_are_no_text_are_replaced() -> None:
    (line,) = read(b"\xff\xfe# Avg")
    assert line.text.endswith("# Avg")
