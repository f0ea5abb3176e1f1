"""`fishplate driver` refuses what it cannot do, in words, before it touches anything."""

import pytest

from tests.conftest import Program


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--move-ib-interfaces", "true"), "IPoIB interfaces stay on the host"),
        (("--profile-provider", "webhook"), "profiles configure network interfaces"),
        (("--feature-gates", "DRAListTypeAttributes=true"), "DRAListTypeAttributes is not known here"),
        (("--bind-address", "nowhere"), "has no port"),
        (("--nri-index", "7"), "is not two digits"),
        (("--driver-name", "Not A Name"), "is no name for a driver"),
        (("--inventory-min-poll-interval", "soon"), "is no duration"),
        (("--injection", "magic"), "'magic' is not one of"),
        (("--filter", "attributes["), "--filter does not compile"),
        (("--cloud-provider-hint", "AWS"), "not supported"),
    ],
)
def test_a_flag_that_cannot_be_followed_is_refused(fishplate: Program, flags: tuple[str, ...], words: str) -> None:
    done = fishplate("driver", "--db-path", "", "--bind-address", "127.0.0.1:0", "--kubeconfig", "/dev/null", *flags)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_klogs_way_of_writing_verbosity_is_taken(fishplate: Program) -> None:
    done = fishplate("driver", "-v=4", "--help")
    assert done.returncode == 0
