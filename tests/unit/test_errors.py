from fishplate.errors import FishplateError, InputError, OutsideError
from fishplate.findings import Finding, Verdict, worst


def test_an_error_says_where_what_and_what_to_do() -> None:
    error = InputError("no such field", where="claim.yaml:7", remedy="write numaNode")
    assert str(error) == "claim.yaml:7: no such field\n  write numaNode"


def test_exit_codes_tell_input_from_the_outside_world() -> None:
    assert (InputError("x").exit_code, OutsideError("x").exit_code, FishplateError("x").exit_code) == (2, 3, 3)


def finding(verdict: Verdict) -> Finding:
    return Finding(id="a.b", place="here", what="so", verdict=verdict)


def test_what_could_not_be_looked_at_never_passes_for_good() -> None:
    assert worst([]) is Verdict.GOOD
    assert worst([finding(Verdict.GOOD), finding(Verdict.CANNOT_TELL)]) is Verdict.CANNOT_TELL
    assert worst([finding(Verdict.CANNOT_TELL), finding(Verdict.BAD)]) is Verdict.BAD
