import pytest

from fishplate.bench.scrub import HIDDEN, MAX_TEXT, keep_environment, scrub


@pytest.mark.parametrize(
    "text",
    [
        "DB_PASSWORD=hunter2",
        "password: hunter2",
        '{"client_secret": "hunter2"}',
        "Authorization: Bearer hunter2hunter2",
        "https://me:hunter2@example.test/x",
        "https://example.test/?sv=1&sig=hunter2%3D&x=1",
        "AccountKey=hunter2==;EndpointSuffix=x",
        "NCCL_API_TOKEN set by environment to hunter2.",
        "eyJhbGciOiJIUzI1.eyJzdWIiOiJodW50ZXIy.hunter2",
        "token='hunter2'",
    ],
)
def test_credentials_are_hidden(text: str) -> None:
    assert "hunter2" not in scrub(text)
    assert HIDDEN in scrub(text)


@pytest.mark.parametrize(
    "text",
    ["NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.0.0.1<0>", "NCCL_IB_HCA set by environment to mlx5_0."],
)
def test_what_a_cause_has_to_show_stays(text: str) -> None:
    assert scrub(text) == text


def test_control_characters_and_length_are_bounded() -> None:
    assert "\x1b" not in scrub("\x1b[31mred")
    assert len(scrub("x" * 10_000)) == MAX_TEXT


def test_of_the_environment_only_what_concerns_a_benchmark_is_kept() -> None:
    variables = [
        "NCCL_DEBUG=INFO",
        "HOME=/root",
        "UCX_TLS=rc",
        "NCCL_AUTH_TOKEN=x",
        "no-equals",
        "AWS_SECRET_ACCESS_KEY=x",
    ]
    assert keep_environment(variables) == {"NCCL_DEBUG": "INFO", "UCX_TLS": "rc", "NCCL_AUTH_TOKEN": HIDDEN}
