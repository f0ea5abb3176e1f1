"""`fishplate bench` as a user runs it: exit codes, JSON, results files, comparisons, expectations."""

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from subprocess import CompletedProcess, run

import pytest

from tests.unit.bench.formats import GIB, Job, devices, write_job

Program = Callable[..., CompletedProcess[str]]
LOGS = Path(__file__).parents[1] / "data" / "bench" / "logs"
GB300 = "Standard_ND128isr_GB300_v6"


def write_log(
    path: Path, busbw: float, *, low: int = GIB, high: int = 8 * GIB, after_devices: Sequence[str] = ()
) -> Path:
    job = Job(devices(2, 1), lambda _size: busbw, low=low, high=high, after_devices=after_devices)
    path.write_text("\n".join(write_job(job)) + "\n")
    return path


# -- judge ---------------------------------------------------------------------------------------------------------


def test_a_good_run_exits_with_0_and_a_bad_one_with_1(fishplate: Program) -> None:
    good = fishplate("bench", "judge", str(LOGS / "nccl-checked.log"), "--size", GB300, "--nics", "1")
    assert (good.returncode, "verdict: good" in good.stdout) == (0, True)
    bad = fishplate("bench", "judge", str(LOGS / "nccl-2.19-gb300-1nic-unaligned.log"), "--size", GB300, "--nics", "1")
    assert (bad.returncode, "verdict: bad" in bad.stdout) == (1, True)
    assert "bench.cause.gpudirect-too-far" in bad.stdout


def test_what_cannot_be_told_is_not_good(fishplate: Program) -> None:
    answer = fishplate("bench", "judge", str(LOGS / "no-size-given.log"))
    assert answer.returncode == 1
    assert "verdict: cannot tell" in answer.stdout
    assert "give --size (its GPUs are NVIDIA GB300)" in answer.stdout


def test_dash_is_standard_input() -> None:
    log = (LOGS / "prefix-kubectl.log").read_bytes()
    argv = [sys.executable, "-m", "fishplate", "bench", "judge", "-", "--size", GB300, "-o", "json"]
    answer = run(argv, input=log, capture_output=True, timeout=50, check=False)
    assert answer.returncode == 0, answer.stderr
    assert json.loads(answer.stdout)["runs"][0]["label"] == "stdin"


def test_json_has_what_the_docs_promise(fishplate: Program) -> None:
    answer = fishplate("bench", "judge", str(LOGS / "cut-in-the-middle-of-a-row.log"), "--size", GB300, "-o", "json")
    document = json.loads(answer.stdout)
    assert (document["schema"], document["verdict"]) == ("fishplate.judgement/v1", "cannot-tell")
    judged = document["runs"][0]
    assert {"verdict", "why", "value", "unit", "bytes", "percent", "ceiling", "rows", "findings"} <= set(judged)
    assert document["unread"]["garbled"] == 1
    assert document["unread"]["shown"][0]["line"] > 1
    docs = (Path(__file__).parents[2] / "docs" / "bench.md").read_text()
    assert all(f"`{field}" in docs or f"{field}[]" in docs for field in ("verdict", "percent", "ceiling", "rows"))


def test_garbled_lines_are_counted_and_shown(fishplate: Program) -> None:
    answer = fishplate("bench", "judge", str(LOGS / "nul-bytes-in-a-row.log"), "--size", GB300)
    assert "not read: 2 garbled lines, 0 lines of something else" in answer.stdout


def test_a_results_file_is_judged_like_the_logs_it_came_from(fishplate: Program, tmp_path: Path) -> None:
    study = tmp_path / "study.json"
    files = [
        f"aligned={LOGS / 'nccl-2.19-gb300-1nic-aligned.log'}",
        f"far={LOGS / 'nccl-2.19-gb300-1nic-unaligned.log'}",
    ]
    first = fishplate("bench", "judge", *files, "--size", GB300, "--nics", "1", "-o", "json", "--save", str(study))
    again = fishplate("bench", "judge", str(study), "-o", "json")
    assert json.loads(first.stdout) == json.loads(again.stdout)
    assert json.loads(study.read_text())["schema"] == "fishplate.bench/v1"
    refused = fishplate("bench", "judge", *files, "--save", str(study))
    assert (refused.returncode, "is there already" in refused.stderr) == (2, True)


def test_a_results_file_holds_no_secret(fishplate: Program, tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    extra = [
        "AZURE_CLIENT_SECRET=hunter2hunter2",
        'curl -H "Authorization: Bearer abcdefghijklmnop" https://user:hunter3@example.test/?sig=hunter4%3D',
        "nccl-test-worker-0:70:90 [0] NCCL INFO NCCL_API_TOKEN set by environment to hunter5.",
    ]
    write_log(log, 25.0, after_devices=extra)
    study = tmp_path / "study.json"
    files = (str(log), str(LOGS / "nccl-tests.json"))
    answer = fishplate("bench", "judge", *files, "--save", str(study), "--size", GB300, "--nics", "1")
    written = study.read_text() + answer.stdout
    for secret in ("hunter", "abcdefghijklmnop", "s3cr3t-value", "ghp_", "topsecretvalue"):
        assert secret not in written
    assert "[hidden]" in written


# -- compare -------------------------------------------------------------------------------------------------------


def test_repeats_give_a_ratio_with_its_spread(fishplate: Program, tmp_path: Path) -> None:
    before = [write_log(tmp_path / f"a{index}.log", busbw) for index, busbw in enumerate((50.0, 52.0, 51.0))]
    after = [write_log(tmp_path / f"b{index}.log", busbw) for index, busbw in enumerate((40.0, 41.0))]
    files = [*(f"before={path}" for path in before), *(f"after={path}" for path in after)]
    answer = fishplate("bench", "compare", *files, "-o", "json")
    (found,) = json.loads(answer.stdout)["comparisons"]
    assert found["ratio"] == pytest.approx(51 / 40.5, abs=0.002)
    assert (found["low"], found["high"]) == (pytest.approx(50 / 41, abs=0.002), pytest.approx(52 / 40, abs=0.002))
    assert (found["repeats"], found["bytes"]) == ([3, 2], 8 * GIB)
    assert fishplate("bench", "compare", *files, "--fail-slower", "5").returncode == 1
    assert fishplate("bench", "compare", *files, "--fail-slower", "50").returncode == 0


def test_a_difference_within_the_noise_is_none(fishplate: Program, tmp_path: Path) -> None:
    before = [write_log(tmp_path / f"a{index}.log", busbw) for index, busbw in enumerate((50.0, 56.0))]
    after = [write_log(tmp_path / f"b{index}.log", busbw) for index, busbw in enumerate((49.0, 52.0))]
    files = [*(f"before={path}" for path in before), *(f"after={path}" for path in after)]
    answer = fishplate("bench", "compare", *files, "--fail-slower", "1")
    assert answer.returncode == 0
    assert "within the noise" in answer.stdout


def test_unlike_runs_are_refused(fishplate: Program, tmp_path: Path) -> None:
    four = tmp_path / "four.log"
    four.write_text("\n".join(write_job(Job(devices(2, 4), lambda _size: 200.0))) + "\n")
    answer = fishplate("bench", "compare", str(write_log(tmp_path / "one.log", 56.0)), str(four))
    assert answer.returncode == 1
    assert "not comparable: GPUs to a node 1 and 4" in answer.stdout


def test_sizes_that_do_not_meet_are_refused(fishplate: Program, tmp_path: Path) -> None:
    small = write_log(tmp_path / "small.log", 5.0, low=1024, high=4096)
    answer = fishplate("bench", "compare", str(small), str(write_log(tmp_path / "large.log", 56.0)))
    assert answer.returncode == 1
    assert "they share no size" in answer.stdout


def test_one_kind_of_run_is_nothing_to_compare(fishplate: Program, tmp_path: Path) -> None:
    answer = fishplate("bench", "compare", str(write_log(tmp_path / "one.log", 56.0)))
    assert (answer.returncode, "one kind of run" in answer.stderr) == (2, True)


# -- expect --------------------------------------------------------------------------------------------------------


def test_expect_says_how_the_ceiling_comes_about(fishplate: Program) -> None:
    answer = fishplate("bench", "expect", "--size", GB300, "--gpus", "1", "--nics", "2", "--align", "numa")
    assert answer.returncode == 0
    for text in ("112.3 GB/s busbw at most", "449.4 Gb/s", "published: 2nic-aligned 112 GB/s", "A model"):
        assert text in answer.stdout


def test_expect_as_json(fishplate: Program) -> None:
    argv = ("bench", "expect", "--size", "Standard_ND96isr_H100_v5", "--nodes", "8", "--gpus", "8", "--nics", "8")
    document = json.loads(fishplate(*argv, "-o", "json").stdout)
    assert document["model"] is True
    assert document["ceiling"]["busbw"] == pytest.approx(450)
    assert document["ceiling"]["ring"] == 400
    assert document["published"][0]["busbw"] == 450


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--gpus", "1", "--nics", "3"), "at most 2 NICs"),
        (("--gpus", "5", "--nics", "4"), "has 4 GPUs and 4 RDMA NICs"),
        (("--gpus", "4", "--nics", "4", "--test", "sendrecv"), "stays inside"),
    ],
)
def test_expect_refuses_what_cannot_be(fishplate: Program, options: tuple[str, ...], words: str) -> None:
    answer = fishplate("bench", "expect", "--size", GB300, *options)
    assert (answer.returncode, words in answer.stderr) == (2, True)


# -- bad input -----------------------------------------------------------------------------------------------------

BAD: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "empty"),
    "blank": (b"\n\n\n", "no benchmark result in 3 lines"),
    "another-program": (b"Reading package lists...\nBuilding dependency tree...\nDone\n", "no benchmark result"),
    "binary": (bytes(range(256)) * 50, "NUL bytes"),
    "nul": (b"\x00" * 4096, "NUL bytes"),
    "half-json": (b'{"config": {}, "results": [', "not the JSON that nccl-tests writes"),
    "other-json": (b'{"apiVersion": "v1"}', "JSON of an unknown kind"),
    "other-schema": (b'{"schema": "fishplate.bench/v9", "runs": []}', "fishplate.bench/v9"),
    "no-runs": (b'{"schema": "fishplate.bench/v1", "runs": []}', "without runs"),
    "wrong-study": (b'{"schema": "fishplate.bench/v1", "runs": 7}', "not a results file"),
    "perftest-json-without-unit": (
        b'{"test_info": {"test": "RDMA_Write BW Test"}, "results": {"MsgSize": 65536, "BW_average": 7, "MsgRate": 9}}',
        "the unit of BW_average 7 cannot be told",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_gets_clear_words_and_exit_2(fishplate: Program, tmp_path: Path, name: str) -> None:
    data, words = BAD[name]
    file = tmp_path / "input"
    file.write_bytes(data)
    answer = fishplate("bench", "judge", str(file))
    assert answer.returncode == 2
    assert words in answer.stderr
    assert str(file) in answer.stderr
    assert "Traceback" not in answer.stderr
    assert not answer.stdout


def test_compare_refuses_bad_input_too(fishplate: Program, tmp_path: Path) -> None:
    (tmp_path / "empty").write_bytes(b"")
    answer = fishplate("bench", "compare", str(LOGS / "nccl-checked.log"), str(tmp_path / "empty"))
    assert (answer.returncode, "empty: empty" in answer.stderr) == (2, True)


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (("judge",), "nothing to read"),
        (("judge", "/nowhere.log"), "No such file"),
        (("judge", "/"), "Is a directory"),
        (("judge", "-", "-"), "once only"),
        (("judge", "--published", "gb999"), "there are: a100"),
        (("judge", str(LOGS / "nccl-checked.log"), "--size", "Standard_ND128isr_GB30_v6"), "Nearest"),
        (("expect", "--size", "Standard_ND96is_H100_v5"), "not RDMA-capable"),
    ],
)
def test_bad_usage_gets_clear_words_and_exit_2(fishplate: Program, argv: tuple[str, ...], words: str) -> None:
    answer = fishplate("bench", *argv)
    assert (answer.returncode, words in answer.stderr) == (2, True)
    assert "Traceback" not in answer.stderr


def test_verbs_that_are_still_to_come_are_not_listed(fishplate: Program) -> None:
    answer = fishplate("bench", "--help")
    verbs = [line.split()[0] for line in answer.stdout.partition("Commands:")[2].splitlines() if line.strip()]
    assert verbs == ["compare", "expect", "judge"]
