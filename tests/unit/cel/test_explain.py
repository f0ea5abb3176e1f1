"""Explanations: every conjunct, its place, its result, the values it saw."""

from fishplate.cel import decode_device, environment

NIC = decode_device(
    "dra.net",
    {"linkType": {"string": "ethernet"}, "rdma": {"bool": True}, "firmware": {"version": "28.40.1"}},
    {"bandwidth": {"value": "100G"}},
)


def test_each_conjunct_is_reported_with_its_values() -> None:
    source = (
        'device.attributes["dra.net"].rdma && (device.attributes["dra.net"].linkType == "infiniband"'
        ' && device.capacity["dra.net"].bandwidth.compareTo(quantity("400G")) >= 0)'
    )
    clauses = environment().compile(source).explain(NIC)
    assert [clause.result for clause in clauses] == ["true", "false", "false"]
    assert [source[slice(*clause.span)] for clause in clauses] == [clause.text for clause in clauses]
    assert clauses[1].text == 'device.attributes["dra.net"].linkType == "infiniband"'
    assert clauses[1].seen == (('device.attributes["dra.net"].linkType', '"ethernet"'),)
    assert clauses[2].seen == (('device.capacity["dra.net"].bandwidth', "100G"),)


def test_clauses_after_a_false_one_are_still_evaluated() -> None:
    clauses = environment().compile('false && device.attributes["dra.net"].nope == 1').explain(NIC)
    assert [clause.result for clause in clauses] == ["false", "error"]
    assert clauses[1].message == "no such key: nope"


def test_names_bound_by_cel_bind_are_seen_through() -> None:
    source = 'cel.bind(a, device.attributes["dra.net"], a.rdma && a.firmware.isLessThan(semver("28.0.0")))'
    clauses = environment().compile(source).explain(NIC)
    assert [(clause.text, clause.result) for clause in clauses] == [
        ("a.rdma", "true"),
        ('a.firmware.isLessThan(semver("28.0.0"))', "false"),
    ]
    assert clauses[1].seen == (("a.firmware", "28.40.1"),)


def test_values_read_inside_a_loop_are_shown_if_they_do_not_change() -> None:
    source = '["infiniband"].exists(kind, kind == device.attributes["dra.net"].linkType)'
    (clause,) = environment().compile(source).explain(NIC)
    assert clause.result == "false"
    assert clause.seen == (('device.attributes["dra.net"].linkType', '"ethernet"'),)


def test_presence_tests_show_what_they_found() -> None:
    (clause,) = environment().compile('has(device.attributes["dra.net"].rail)').explain(NIC)
    assert clause.seen == (('has(device.attributes["dra.net"].rail)', "false"),)


def test_a_clause_that_is_no_bool_says_what_it_is() -> None:
    (clause,) = environment().compile('device.attributes["dra.net"].linkType').explain(NIC)
    assert (clause.result, clause.message) == ("error", 'not a bool but "ethernet"')


def test_an_unusable_device_gives_one_clause_in_error() -> None:
    broken = decode_device("dra.net", {"bad": {}})
    (clause,) = environment().compile("true && true").explain(broken)
    assert clause.result == "error"
    assert clause.message == "attribute bad: unsupported attribute value"
