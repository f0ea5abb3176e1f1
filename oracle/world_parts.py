"""The small parts of random worlds: attributes, selectors, taints, policies, counters, constraints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from random import Random

Part = dict[str, Any]
NODE, OTHER = "node-a", "node-b"
DRIVERS = ("gpu.example.com", "nic.example.com")
CONDITIONS = ("ready.example.com/attached", "ready.example.com/powered")
_KEYS, _VALUES = ("broken", "busy"), ("", "yes", "no")
_EFFECTS = ("NoSchedule", "NoSchedule", "NoExecute", "None", "Weird")
_ATTRIBUTES = ("gpu.example.com/numa", "nic.example.com/numa", "resource.kubernetes.io/root", "gpu.example.com/rail")
_AMOUNTS = ("1", "2", "3", "4", "1Gi", "2Gi", "500m", "1500m", "2k")
_LIMITS = ("4", "8", "4Gi", "10", "2500m")

# Mostly harmless; a few fail on devices that lack what they read, or do not compile.
_EXPRESSIONS = (
    'device.driver == "gpu.example.com"',
    'device.driver == "nic.example.com"',
    'device.attributes["gpu.example.com"].?numa.orValue(0) == 1',
    'device.attributes["nic.example.com"].?numa.orValue(1) == 1',
    'has(device.attributes["resource.kubernetes.io"].root)',
    'device.attributes["resource.kubernetes.io"].?root.orValue("") != "pci1"',
    'device.attributes["gpu.example.com"].?fast.orValue(true)',
    'device.attributes["nic.example.com"].?fast.orValue(true)',
    'device.attributes["nic.example.com"].?fast.orValue(false)',
    'device.capacity["gpu.example.com"].?memory.hasValue() || device.driver != "gpu.example.com"',
    "true",
    'device.attributes["gpu.example.com"].?rail.orValue("") != "r2"',
    "false",
)
_RISKY = (
    'device.attributes["gpu.example.com"].numa == 1',
    'device.attributes["resource.kubernetes.io"].root == "pci0"',
    'device.attributes["nope.example.com"].numa == 1',
    'device.capacity["gpu.example.com"].memory.compareTo(quantity("2Gi")) >= 0',
    "device.nope",
    "1 +",
)


class Parts:
    def __init__(self, random: Random) -> None:
        self.random = random
        self.lists = False

    def attributes(self) -> Part:
        random = self.random
        values: Part = {}
        if random.random() < 0.85:
            prefix = random.choice(("", "", "gpu.example.com/", "nic.example.com/"))
            values[prefix + "numa"] = {"int": random.choice((0, 1, 1))}
        if random.random() < 0.85:
            values["resource.kubernetes.io/root"] = self._root()
        if random.random() < 0.6:
            values["fast"] = {"bool": random.random() < 0.6}
        if random.random() < 0.5:
            values[random.choice(("rail", "gpu.example.com/rail"))] = {"string": random.choice(("r0", "r1", "r2"))}
        if random.random() < 0.002:
            values["odd"] = {}
        if self.lists or random.random() < 0.003:
            self._list_some(values)
        return values

    def _list_some(self, values: Part) -> None:
        """More values beside the plain one."""
        random = self.random
        for name, value in values.items():
            if random.random() < 0.8 and "string" in value:
                others = ("pci0", "pci1", "pci2") if name.endswith("root") else ("r0", "r1", "r2")
                values[name] = {"strings": [value["string"], *random.sample(others, random.choice((0, 1, 1, 2)))]}
            elif random.random() < 0.3 and "int" in value:
                values[name] = {"ints": [value["int"], *random.sample((0, 1, 2), random.choice((0, 1, 2)))]}
        if random.random() < 0.01:
            values["resource.kubernetes.io/root"] = random.choice(({"strings": []}, {"versions": ["1.2.3"]}))

    def _root(self) -> Part:
        random = self.random
        if random.random() < 0.06:
            return random.choice(({"version": "1.2.3"}, {"version": "1.2.3+b"}, {"int": 0}, {"bool": True}))
        return {"string": random.choice(("pci0", "pci1", "pci2"))}

    def selectors(self) -> list[Part]:
        random = self.random
        found = []
        for _ in range(random.choice((1, 1, 1, 2))):
            pool = _RISKY if random.random() < 0.04 else _EXPRESSIONS
            found.append({"cel": {"expression": random.choice(pool)}})
        if random.random() < 0.003:
            found.append({})
        return found

    def device_class(self, name: str) -> Part:
        random = self.random
        spec: Part = {}
        if name != "any":
            spec["selectors"] = [{"cel": {"expression": f'device.driver == "{name}.example.com"'}}]
        if random.random() < 0.15:
            spec["selectors"] = [entry for entry in self.selectors() if entry]
        if random.random() < 0.25:
            spec["config"] = [self._opaque() for _ in range(random.choice((1, 2)))]
        return {"metadata": {"name": name}, "spec": spec}

    def _opaque(self) -> Part:
        random = self.random
        return {"opaque": {"driver": random.choice(DRIVERS), "parameters": {"mtu": random.choice((1500, 9000))}}}

    def configuration(self, names: list[str]) -> Part:
        random = self.random
        part = self._opaque()
        if random.random() < 0.7:
            part["requests"] = random.sample(names, random.randint(1, min(len(names), 3)))
        return part

    def constraint(self, names: list[str]) -> Part:
        random = self.random
        part: Part = {}
        if random.random() < 0.5:
            part["requests"] = random.sample(names, random.randint(1, min(len(names), 3)))
        kind = random.random()
        attributes = _ATTRIBUTES[2:3] if self.lists and random.random() < 0.7 else _ATTRIBUTES
        if kind < 0.62:
            part["matchAttribute"] = random.choice(attributes)
        elif kind < 0.99:
            part["distinctAttribute"] = random.choice(attributes)
        if random.random() < 0.02:
            part["distinctAttribute"] = random.choice(attributes)
        return part

    def taint(self) -> Part:
        random = self.random
        value = random.choice(_VALUES)
        taint = {"key": random.choice(_KEYS), "effect": random.choice(_EFFECTS)}
        return {**taint, "value": value} if value else taint

    def toleration(self) -> Part:
        random = self.random
        part: Part = {"operator": random.choice(("Exists", "Equal", "Equal"))}
        if random.random() < 0.8:
            part["key"] = random.choice(_KEYS)
        if part["operator"] == "Equal" and random.random() < 0.7:
            part["value"] = random.choice(_VALUES[1:])
        if random.random() < 0.5:
            part["effect"] = random.choice(_EFFECTS[:4])
        if random.random() < 0.05:
            part["operator"] = random.choice(("", "Odd"))
        return {key: value for key, value in part.items() if value != ""}

    def capacity(self) -> Part:
        random = self.random
        found: Part = {}
        # Not both spellings of one name: which of them CEL sees is left to the order of a Go map.
        for name in (random.choice(("memory", "memory", "gpu.example.com/memory")), "bandwidth"):
            if random.random() < 0.6:
                entry: Part = {"value": random.choice(_LIMITS)}
                if random.random() < 0.5:
                    entry["requestPolicy"] = self._policy()
                found[name] = entry
        return found

    def _policy(self) -> Part:
        random = self.random
        policy: Part = {}
        kind = random.random()
        if kind < 0.35:
            policy["validValues"] = random.choice((["1", "2", "4"], ["1Gi", "2Gi"], ["500m", "1500m", "3"], ["2"]))
            policy["default"] = policy["validValues"][0]
        elif kind < 0.85:
            low = random.choice(("1", "1Gi", "500m", "0", "2"))
            spread: Part = {"min": low}
            if random.random() < 0.5:
                spread["max"] = random.choice(("3", "2Gi", "3500m", "8"))
            if random.random() < 0.6:
                spread["step"] = random.choice(("1", "2", "500m", "1Gi", "3", "1k"))
            policy["validRange"] = spread
            policy["default"] = low
        if random.random() < 0.25:
            policy["default"] = random.choice(("1", "2", "1000m", "1.0", "1Ki", "1024"))
        if random.random() < 0.15:
            policy.pop("default", None)
        return policy

    def capacity_requests(self) -> Part:
        random = self.random
        names = random.sample(("memory", "gpu.example.com/memory", "bandwidth"), random.choice((0, 1, 1, 1, 2)))
        found: Part = {name: random.choice(_AMOUNTS) for name in names}
        if names and random.random() < 0.04:
            found[names[0]] = random.choice(("-1", "1e30", "9223372036854775807", "0", "100u"))
        return found

    def counter_set(self, name: str) -> Part:
        random = self.random
        return {
            "name": name,
            "counters": {key: {"value": random.choice(("2", "4", "4Gi", "6"))} for key in ("slots", "mem")},
        }

    def consumption(self, sets: list[Part]) -> list[Part]:
        random = self.random
        found = []
        for one in random.sample(sets, random.randint(1, len(sets))):
            counters = {
                key: {"value": random.choice(("1", "2", "2", "1Gi", "3"))}
                for key in ("slots", "mem")
                if random.random() < 0.8
            }
            if random.random() < 0.01:
                counters["nope"] = {"value": "1"}
            entry: Part = {"counterSet": one["name"], "counters": counters}
            if random.random() < 0.01:
                entry["counterSet"] = "nowhere"
            if random.random() < 0.005:
                entry["compatibilityGroups"] = ["g"]
            found.append(entry)
        return found

    def node_selector(self) -> Part:
        random = self.random
        kind = random.random()
        if kind < 0.2:
            field = {
                "key": "metadata.name",
                "operator": random.choice(("In", "NotIn")),
                "values": [random.choice((NODE, OTHER))],
            }
            return {"nodeSelectorTerms": [{"matchFields": [field]}]}
        expressions = [self._expression() for _ in range(random.choice((1, 1, 2)))]
        terms: list[Part] = [{"matchExpressions": expressions}]
        if kind > 0.97:
            terms.append({"matchExpressions": [self._expression()]})
        if kind < 0.22:
            terms = [{}]
        return {"nodeSelectorTerms": terms}

    def _expression(self) -> Part:
        random = self.random
        if random.random() < 0.005:
            return {"key": "zone", "operator": random.choice(("Like", "In", "Gt"))}
        return random.choice(
            (
                {"key": "zone", "operator": "In", "values": ["z1", "z2"]},
                {"key": "zone", "operator": "In", "values": ["z1"]},
                {"key": "rack", "operator": "In", "values": ["r1"]},
                {"key": "rack", "operator": "NotIn", "values": ["r9"]},
                {"key": "rack", "operator": "Exists"},
                {"key": "nope", "operator": "DoesNotExist"},
                {"key": "nope", "operator": "NotIn", "values": ["x"]},
                {"key": "number", "operator": "Gt", "values": ["5"]},
                {"key": "number", "operator": "Lt", "values": ["8"]},
                {"key": "zone", "operator": "In", "values": ["z2"]},
            )
        )
