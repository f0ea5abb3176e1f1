import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fishplate.dra.parameter_schema import Interface, NetworkConfig
from fishplate.dra.parameters import Parameters, applies, choose_parameters, decode_parameters
from fishplate.errors import DocumentError
from fishplate.k8s.claim import DeviceAllocationConfiguration, OpaqueDeviceConfiguration


def wrong(raw: object) -> list[str]:
    return decode_parameters(raw if isinstance(raw, bytes) or raw is None else json.dumps(raw))[1]


def config(parameters: object, *requests: str, source: str = "FromClaim", driver: str = "dra.net") -> object:
    opaque = OpaqueDeviceConfiguration(driver=driver, parameters=parameters)
    return DeviceAllocationConfiguration(source=source, requests=requests, opaque=opaque)


def choose(request: str, *configs: object) -> Parameters:
    return choose_parameters(configs, request)  # type: ignore[arg-type]


# -- what is accepted --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "raw",
    [
        None,
        b"",
        b" ",
        b"null",
        b"{}",
        b'{"interface": {}}',
        b'{"interface": {"name": "", "addresses": []}, "routes": []}',
    ],
)
def test_nothing_said_is_nothing_wrong(raw: bytes | None) -> None:
    assert decode_parameters(raw) == (Parameters(), [])


def test_our_own_section_is_understood() -> None:
    found, problems = decode_parameters(b'{"rdma": {"managementNodes": true, "ncclEnvironment": false}}')
    assert (found, problems) == (Parameters(management_nodes=True, nccl_environment=False), [])


def test_bytes_text_raw_and_values_mean_the_same() -> None:
    text = '{"rdma": {"managementNodes": true}}'
    given = (text, text.encode(), msgspec.Raw(text.encode()), json.loads(text))
    assert {decode_parameters(one)[0].management_nodes for one in given} == {True}


# -- what is refused ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "raw",
    [
        b"{",
        b"mtu: 9000",
        b'{"a": NaN}',
        b"\xff\xfe",
        b"[" * 3000,
        b"x" * 30_000,
        b'{"a": 1} {}',
        b'{"a": ' + b"9" * 5000,
    ],
)
def test_what_is_not_json_is_told_in_upstreams_words(raw: bytes) -> None:
    (problem,) = wrong(raw)
    assert problem.startswith("failed to unmarshal JSON data: ")
    assert len(problem) < 400


@pytest.mark.parametrize("raw", [b"[]", b'"x"', b"3", b"true"])
def test_anything_but_an_object_is_refused(raw: bytes) -> None:
    assert "expected an object" in wrong(raw)[0]


def test_unknown_fields_are_told_with_their_path_and_the_nearest() -> None:
    assert wrong({"interface": {"nmae": ""}, "rdam": {}, "rdma": {"managementNode": True}}) == [
        'failed to unmarshal strict JSON data: unknown field "rdam" (did you mean rdma?)',
        'failed to unmarshal strict JSON data: unknown field "interface.nmae" (did you mean name?)',
        'failed to unmarshal strict JSON data: unknown field "rdma.managementNode" (did you mean managementNodes?)',
    ]
    assert 'unknown field "Interface"' in wrong({"Interface": {}})[0]  # names are spelt exactly
    assert 'unknown field "neighbors[0].ipAddress"' in wrong({"neighbors": [{"ipAddress": "::1"}]})[0]


def test_duplicate_fields_are_told_with_their_path() -> None:
    problems = wrong(b'{"rdma": {"managementNodes": true, "managementNodes": false}, "profile": "", "profile": ""}')
    assert problems == [
        'failed to unmarshal strict JSON data: duplicate field "profile"',
        'failed to unmarshal strict JSON data: duplicate field "rdma.managementNodes"',
    ]


def test_parameters_of_another_driver_are_told_apart() -> None:
    (problem,) = wrong({"apiVersion": "resource.nvidia.com/v1beta1", "kind": "GpuConfig"})
    assert 'unknown field "apiVersion"' in problem
    assert "parameters of resource.nvidia.com/v1beta1 GpuConfig, not of this driver" in problem
    assert "not of this driver" in wrong({"kind": "NetworkConfig"})[0]


def test_wrong_types_are_all_told() -> None:
    problems = wrong({"rdma": {"managementNodes": "yes", "ncclEnvironment": 1}, "ethtool": [], "routes": {}})
    places = [one.partition(":")[0] for one in problems if "failed to unmarshal JSON data" in one]
    assert places == ["routes", "ethtool", "rdma.managementNodes", "rdma.ncclEnvironment"]
    assert "got `str`" in " ".join(problems)


# What each field of upstream's might hold. A field missing here is one nobody tried.
UNSUPPORTED = {
    "profile": "p",
    "subInterface": {"type": "ipvlan"},
    "routes": [{"destination": "10.0.0.0/8", "gateway": "10.0.0.1"}],
    "rules": [{"priority": 1, "source": "10.0.0.0/8", "table": 100}],
    "neighbors": [{"destination": "10.0.0.1", "hardwareAddr": "00:11:22:33:44:55"}],
    "ethtool": {"features": {"gro": True}},
    "interface.name": "net0",
    "interface.addresses": ["10.0.0.1/24"],
    "interface.dhcp": False,
    "interface.mtu": 9000,
    "interface.hardwareAddr": "00:11:22:33:44:55",
    "interface.gsoMaxSize": 65536,
    "interface.groMaxSize": 65536,
    "interface.gsoIPv4MaxSize": 65536,
    "interface.groIPv4MaxSize": 65536,
    "interface.disableEbpfPrograms": False,
    "interface.forwarding": True,
    "interface.arpIgnore": 0,
    "interface.arpAnnounce": 0,
    "interface.vrf": {"name": "v"},
    "interface.type": "ipvlan",
    "interface.addressing": "static",
    "interface.unnumbered": True,
    "interface.ipvlan": {"mode": "l2"},
    "interface.acceptRA": 0,
}


@pytest.mark.parametrize("field", UNSUPPORTED)
def test_a_field_that_is_not_supported_is_refused_by_its_name(field: str) -> None:
    section, _, name = field.partition(".")
    raw = {section: {name: UNSUPPORTED[field]} if name else UNSUPPORTED[field]}
    (problem,) = wrong(raw)
    assert problem.startswith(f"{field}: not supported by this release")


def test_every_field_of_upstream_is_tried_above() -> None:
    top = {field.encode_name for field in msgspec.structs.fields(NetworkConfig)} - {"interface", "rdma"}
    inner = {f"interface.{field.encode_name}" for field in msgspec.structs.fields(Interface)}
    assert set(UNSUPPORTED) == top | inner


VALUES = {
    "interface.name: name 'much-too-long-name' exceeds maximum length of 15 characters": {"name": "much-too-long-name"},
    "interface.name: name 'a/b' cannot contain '/'": {"name": "a/b"},
    "interface.name: name 'a b' cannot contain whitespace": {"name": "a b"},
    "interface.name: name '..' cannot be '.' or '..'": {"name": ".."},
    "interface.name: name 'a!' contains invalid character '!'. Only letters, digits, '-', '_', '.' are recommended": {
        "name": "a!"
    },
    "interface.addresses[1]: invalid IP CIDR format '10.0.0.1'": {"addresses": ["10.0.0.1/24", "10.0.0.1"]},
    "interface: dhcp and addresses are mutually exclusive": {"dhcp": True, "addresses": ["10.0.0.1/24"]},
    "interface.mtu: must be at least 68, got 10": {"mtu": 10},
    "interface.mtu: 2147483648 is no 32-bit integer": {"mtu": 2**31},
    "interface.hardwareAddress: invalid Hardware Address format '00:11'": {"hardwareAddr": "00:11"},
    "interface.gsoMaxSize: must be positive, got 0": {"gsoMaxSize": 0},
    "interface.gsov4MaxSize: must be positive, got -1": {"gsoIPv4MaxSize": -1},
    "interface.grov4MaxSize: must be positive, got 0": {"groIPv4MaxSize": 0},
    "interface.arpIgnore: must be one of 0, 1, 2, 3, or 8, got 4": {"arpIgnore": 4},
    "interface.arpAnnounce: must be between 0 and 2, got 3": {"arpAnnounce": 3},
    "interface.vrf.name: cannot be empty": {"vrf": {"table": 5}},
    "interface.vrf.table: must be a positive integer, got 0": {"vrf": {"name": "v", "table": 0}},
    "interface.vrf.table: cannot use reserved table ID 254": {"vrf": {"name": "v", "table": 254}},
}


@pytest.mark.parametrize("message", VALUES)
def test_wrong_values_of_an_interface_are_told_in_upstreams_words(message: str) -> None:
    assert message in wrong({"interface": VALUES[message]})


LISTS: dict[str, dict[str, object]] = {
    "routes[0].destination: cannot be empty": {"routes": [{"gateway": "10.0.0.1"}]},
    "routes[0].destination: invalid CIDR format '10.0.0.1' (host routes use /32 or /128)": {
        "routes": [{"destination": "10.0.0.1", "gateway": "10.0.0.1"}]
    },
    "routes[0].scope: invalid scope '1', only Link (253) or Universe (0) allowed": {
        "routes": [{"destination": "10.0.0.0/8", "gateway": "10.0.0.1", "scope": 1}]
    },
    "routes[0].gateway: must be specified for Universe scope routes": {"routes": [{"destination": "10.0.0.0/8"}]},
    "routes[0].gateway: invalid IP address format 'x'": {"routes": [{"destination": "10.0.0.0/8", "gateway": "x"}]},
    "routes[0].gateway: '::1' must be the same IP family as destination '10.0.0.0/8'": {
        "routes": [{"destination": "10.0.0.0/8", "gateway": "::1"}]
    },
    "routes[0].source: invalid IP address format '10.0.0.1/8'": {
        "routes": [{"destination": "10.0.0.0/8", "scope": 253, "source": "10.0.0.1/8"}]
    },
    "routes[0].table: must be a non-negative integer, got -1": {
        "routes": [{"destination": "10.0.0.0/8", "scope": 253, "table": -1}]
    },
    "rules[0].priority: must be an integer between 0 and 32767, got 32768": {"rules": [{"priority": 32768}]},
    "rules[0].source: invalid CIDR format '10.0.0.1'": {"rules": [{"source": "10.0.0.1"}]},
    "rules[0]: source '10.0.0.0/8' and destination '::/0' must be the same IP family": {
        "rules": [{"source": "10.0.0.0/8", "destination": "::/0"}]
    },
    "rules: rules are not supported when VRF is enabled": {"rules": [{}], "interface": {"vrf": {"name": "v"}}},
    "neighbors[0].destination: cannot be empty": {"neighbors": [{"hardwareAddr": "00:11:22:33:44:55"}]},
    "neighbors[0].destination: invalid IP address format 'x'": {"neighbors": [{"destination": "x"}]},
    "neighbors[0].hardwareAddress: cannot be empty": {"neighbors": [{"destination": "::1"}]},
    "neighbors[0].hardwareAddress: invalid Hardware Address format '1'": {
        "neighbors": [{"destination": "::1", "hardwareAddr": "1"}]
    },
}


@pytest.mark.parametrize("message", LISTS)
def test_wrong_routes_rules_and_neighbours_are_told_in_upstreams_words(message: str) -> None:
    assert message in wrong(LISTS[message])


def test_addresses_of_interfaces_in_all_spellings_are_good() -> None:
    good = ["00:11:22:33:44:55", "00-11-22-33-44-55", "0011.2233.4455", ":".join(["00"] * 20), "AA:bb:CC:dd:EE:ff"]
    for address in good:
        assert "hardwareAddress" not in " ".join(wrong({"interface": {"hardwareAddr": address}}))


# -- several configurations --------------------------------------------------------------------------------------


def test_the_claim_overrides_the_class_field_by_field() -> None:
    claim = config({"rdma": {"managementNodes": False}})
    of_class = config({"rdma": {"managementNodes": True, "ncclEnvironment": True}}, source="FromClass")
    expected = Parameters(management_nodes=False, nccl_environment=True)
    assert choose("nic", of_class, claim) == expected
    assert choose("nic", claim, of_class) == expected  # wherever the list puts the class


def test_of_two_in_the_claim_the_later_holds() -> None:
    first, second = config({"rdma": {"ncclEnvironment": True}}), config({"rdma": {"ncclEnvironment": False}}, "nic")
    assert choose("nic", first, second).nccl_environment is False
    assert choose("nic", second, first).nccl_environment is True
    assert choose("other", first, second).nccl_environment is True


def test_a_request_covers_its_alternatives_and_an_alternative_only_itself() -> None:
    assert applies((), "nic/fast")
    assert applies(("nic",), "nic/fast")
    assert applies(("nic/fast",), "nic/fast")
    assert not applies(("nic/slow",), "nic/fast")
    assert not applies(("nic/fast",), "nic")
    assert not applies(("fast",), "nic/fast")


def test_other_drivers_and_other_requests_are_not_read() -> None:
    assert choose("nic", config(b"{", driver="gpu.nvidia.com"), config(b"{", "gpu")) == Parameters()


def test_problems_of_all_configurations_are_told_at_once() -> None:
    with pytest.raises(DocumentError) as caught:
        choose("nic", config({"a": 1}), config({"interface": {"mtu": 9000}}, source="FromClass"))
    text = str(caught.value)
    assert text.startswith("parameters for request nic: config[1] (class): interface.mtu: not supported")
    assert 'config[0] (claim): failed to unmarshal strict JSON data: unknown field "a"' in text


def test_a_flood_of_problems_is_cut() -> None:
    with pytest.raises(DocumentError, match="and 184 more") as caught:
        choose("nic", config({f"x{number}": 1 for number in range(200)}))
    assert len(str(caught.value)) < 8000


# -- hostile bytes -----------------------------------------------------------------------------------------------

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=10,
)
_NAMES = [field.encode_name for field in msgspec.structs.fields(NetworkConfig)]
_INNER = [field.encode_name for field in msgspec.structs.fields(Interface)] + [
    "managementNodes",
    "destination",
    "table",
]


@given(st.binary(max_size=200) | _JSON.map(lambda value: json.dumps(value).encode()))
def test_any_bytes_are_read_or_refused(raw: bytes) -> None:
    found, problems = decode_parameters(raw)
    assert not problems or found == Parameters()
    assert all(one.encode() for one in problems)


@given(st.dictionaries(st.sampled_from(_NAMES), _JSON | st.dictionaries(st.sampled_from(_INNER), _JSON), max_size=4))
def test_fields_of_any_value_are_read_or_refused(value: dict[str, object]) -> None:
    found, problems = decode_parameters(value)
    assert not problems or found == Parameters()
    assert all(one.encode() for one in problems)
