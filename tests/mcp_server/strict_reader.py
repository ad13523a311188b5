"""A strict reader: checks each line that an assistant is told against the objects of the hub.

It reads the hub itself, by labels, names and resource versions, and shares no code with what it
checks. A line that no rule knows fails, so that nobody adds a sentence that nothing checks.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from dsf.api.names import REPLICA_SET_LABEL
from dsf.kube.kinds import (
    MANIFEST_WORK,
    MANIFEST_WORK_REPLICA_SET,
    PLACEMENT,
    PLACEMENT_BINDING,
    PLACEMENT_PLAN,
    POLICY,
    Kind,
)
from dsf.kube.port import Kube, Object

GENERATED = "dynamic-scoring-framework-mcp/generated"
WRITTEN = (PLACEMENT, PLACEMENT_BINDING, POLICY)

Pair = tuple[str, str]


@dataclass(frozen=True)
class HubTruth:
    """What is on the hub at one moment, for one namespace.

    `objects`: the generated ones with uid and generation. `placed`: workloads and the clusters
    that their Placements name. `enforced`: clusters and bound policies. `available`: workloads
    whose ManifestWorks on a cluster are available. `plans`: the records by revision.
    """

    objects: Mapping[tuple[str, str], tuple[str, str]]
    placed: frozenset[Pair]
    enforced: frozenset[Pair]
    available: frozenset[Pair]
    plans: Mapping[int, Object]

    @property
    def in_force(self) -> Object | None:
        """The plan that was written whole and not replaced."""
        found = [obj for obj in self.plans.values() if obj["status"].get("phase") == "Applied"]
        return max(found, key=lambda obj: obj["spec"]["revision"], default=None)

    @property
    def workloads(self) -> dict[str, set[str]]:
        """The clusters of each placed workload."""
        found: dict[str, set[str]] = {}
        for workload, cluster in self.placed:
            found.setdefault(workload, set()).add(cluster)
        return found


async def read_truth(hub: Kube, namespace: str) -> HubTruth:
    """Read the hub."""

    async def listed(kind: Kind, where: str | None = namespace) -> tuple[Object, ...]:
        return (await hub.list(kind, where)).items

    generated = {
        (kind.kind, obj["metadata"]["name"]): obj
        for kind in WRITTEN
        for obj in await listed(kind)
        if (obj["metadata"].get("labels") or {}).get(GENERATED) == "true"
    }
    named = {
        name: _clusters(obj) for (kind, name), obj in generated.items() if kind == PLACEMENT.kind
    }
    placed = [
        (obj["metadata"]["name"], cluster)
        for obj in await listed(MANIFEST_WORK_REPLICA_SET)
        for cluster in named.get(obj["spec"]["placementRefs"][0]["name"], ())
    ]
    enforced = [
        (cluster, subject["name"])
        for (kind, _), obj in generated.items()
        if kind == PLACEMENT_BINDING.kind
        for cluster in named[obj["placementRef"]["name"]]
        for subject in obj["subjects"]
    ]
    works = await listed(MANIFEST_WORK, None)
    return HubTruth(
        objects={
            key: (obj["metadata"]["uid"], json.dumps(_decided(obj), sort_keys=True))
            for key, obj in generated.items()
        },
        placed=frozenset(placed),
        enforced=frozenset(enforced),
        available=frozenset(
            (work["metadata"]["name"], work["metadata"]["namespace"])
            for work in works
            if _is_true(work, "Available") and _is_of(work, namespace)
        ),
        plans={obj["spec"]["revision"]: obj for obj in await listed(PLACEMENT_PLAN)},
    )


def _is_of(work: Object, namespace: str) -> bool:
    label = (work["metadata"].get("labels") or {}).get(REPLICA_SET_LABEL, "")
    return str(label).startswith(f"{namespace}.")


def _decided(obj: Object) -> Object:
    return {key: part for key, part in obj.items() if key not in ("metadata", "status")}


def _clusters(placement: Object) -> set[str]:
    """Read the names that a generated Placement selects: by label, or by a CEL expression."""
    if placement["spec"].get("numberOfClusters") == 0:
        return set()
    found = set[str]()
    for predicate in placement["spec"].get("predicates") or ():
        selector = predicate["requiredClusterSelector"]
        labels = selector.get("labelSelector") or {}
        found.update((labels.get("matchLabels") or {}).values())
        for expression in labels.get("matchExpressions") or ():
            found.update(expression["values"])
        for text in (selector.get("celSelector") or {}).get("celExpressions") or ():
            found.update(re.findall(r'"([^"]+)"', text))
    return found


def _is_true(obj: Object, condition: str) -> bool:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return any(item["type"] == condition and item["status"] == "True" for item in conditions)


@dataclass
class StrictReader:
    """Checks answers; `before` and `after` are the hub around the call that is checked."""

    namespace: str
    hub_name: str
    before: HubTruth
    after: HubTruth
    about: tuple[str, ...] = ()
    """Parts of the names of the workloads that the plan is about; none: all."""
    checked: Counter[str] = field(default_factory=Counter)

    def check(self, text: str) -> None:
        """Check each line of an answer or a question; raises AssertionError."""
        for line in text.splitlines():
            for pattern, rule in _RULES.items():
                found = re.fullmatch(pattern, line)
                if found:
                    rule(self, found)
                    self.checked[rule.__name__] += 1
                    break
            else:
                raise AssertionError(f"no rule checks this line: {line!r}")

    @property
    def writes(self) -> Counter[str]:
        """How many generated objects were created, patched and deleted."""
        was, now = self.before.objects, self.after.objects
        counts = Counter(create=len(now.keys() - was.keys()), delete=len(was.keys() - now.keys()))
        counts["patch"] = sum(was[key] != now[key] for key in was.keys() & now.keys())
        return +counts

    def moved(self, workload: str) -> tuple[set[str], set[str]]:
        """Return the clusters of a workload before and after."""
        was, now = self.before.workloads, self.after.workloads
        return was.get(workload, set()), now.get(workload, set())

    @property
    def redivided(self) -> set[str]:
        """The clusters whose enforced policies changed."""
        return {cluster for cluster, _ in self.before.enforced ^ self.after.enforced}


def _at_stake(reader: StrictReader, found: re.Match[str]) -> None:
    told = {name: int(count) for name, count in re.findall(r"(\w[\w ]*?) (\d+)", found["counts"])}
    names = reader.before.workloads.keys() | reader.after.workloads.keys()
    acts = Counter[str]()
    for name in names:
        was, now = reader.moved(name)
        if was and not now:
            acts["stop"] += 1
        elif now and not was:
            acts["start"] += 1
        elif was != now or was & reader.redivided:
            acts["move"] += 1
    assert told["Stop"] == acts["stop"]
    assert told["start"] == acts["start"]
    assert told["move"] + told.get("lose places", 0) == acts["move"]
    assert sum(told.values()) == int(found["all"])
    assert found["hub"] == reader.hub_name
    assert found["namespace"] == reader.namespace


def _uncovered(reader: StrictReader, found: re.Match[str]) -> None:
    lost = [name for name in reader.before.workloads if reader.moved(name)[1] & reader.redivided]
    assert len(lost) == int(found[1])


def _move(reader: StrictReader, found: re.Match[str]) -> None:
    was, now = reader.moved(_bare(found["workload"]))
    places = re.split(r" to | and ", found["where"].strip())
    said = [_bare(re.split(r"(?:^|.* )(?:on|from) ", place)[-1]) for place in places]
    match found["verb"]:
        case "starts":
            assert not was
            assert set(said) == now
        case "stops":
            assert not now
            assert set(said) == was
        case _:
            assert set(said) == was | now, (found[0], was, now)


def _unchanged(reader: StrictReader, found: re.Match[str]) -> None:
    same = [name for name in reader.before.workloads if _stayed(reader, name)]
    assert len(same) == int(found[1])


def _stayed(reader: StrictReader, name: str) -> bool:
    was, now = reader.moved(name)
    return was == now and not was & reader.redivided


def _policies(reader: StrictReader, found: re.Match[str]) -> None:
    names = set(map(_bare, found["names"].split(", ")))
    assert names == reader.redivided
    assert len(names) == int(found["count"])


def _verdict(reader: StrictReader, found: re.Match[str]) -> None:
    names = [
        name
        for name in reader.after.workloads
        if not reader.about or any(part in name for part in reader.about)
    ]
    assert int(found["placed"]) == len(names)


def _objects(reader: StrictReader, found: re.Match[str]) -> None:
    told = {action: int(count) for action, count in re.findall(r"(\w+) (\d+)", found[1])}
    assert told == dict(reader.writes)


def _digest(reader: StrictReader, found: re.Match[str]) -> None:
    current = reader.after.in_force
    if current is not None and reader.writes:
        assert current["spec"]["digest"] == found[1]


def _nothing_written(reader: StrictReader, _: re.Match[str]) -> None:
    assert not reader.writes
    assert reader.before.plans.keys() == reader.after.plans.keys()


def _applied(reader: StrictReader, found: re.Match[str]) -> None:
    assert int(found[1]) == reader.writes.total()
    assert reader.after.in_force != reader.before.in_force


def _repeated(reader: StrictReader, found: re.Match[str]) -> None:
    _nothing_written(reader, found)
    current = reader.after.in_force
    assert current is not None
    assert current["metadata"]["name"] == found["record"]
    written = (current["spec"]["changes"][name] for name in ("create", "patch", "delete"))
    assert sum(written) == int(found["changes"])


def _not_in_force(reader: StrictReader, found: re.Match[str]) -> None:
    _nothing_written(reader, found)
    current, record = reader.after.in_force, reader.after.plans[int(found["revision"])]
    assert found["record"].rpartition("-")[2] in map(str, reader.after.plans)
    assert record["status"]["phase"] == found["phase"]
    messages = [item["message"] for item in record["status"]["conditions"]]
    assert any(found["why"] == message for message in messages)
    assert current is None or not current["spec"]["digest"].startswith(found["digest"])


def _landed(reader: StrictReader, found: re.Match[str]) -> None:
    done = reader.after.placed & reader.after.available
    assert int(found["placed"]) == len(reader.after.placed)
    assert int(found["landed"]) <= len(done)
    if int(found["landed"]) == int(found["placed"]):
        assert done == reader.after.placed


def _nothing_placed(reader: StrictReader, _: re.Match[str]) -> None:
    assert not reader.after.placed


def _in_force(reader: StrictReader, found: re.Match[str]) -> None:
    current = reader.after.in_force
    assert current is not None
    assert current["spec"]["revision"] == int(found["revision"])
    assert current["spec"]["digest"].startswith(found["digest"])
    restored = (current["spec"].get("rollback") or {}).get("toRevision")
    assert (str(restored) if restored else None) == found["restored"]


def _none_in_force(reader: StrictReader, found: re.Match[str]) -> None:
    assert reader.after.in_force is None
    assert reader.after.plans[int(found["revision"])]["status"]["phase"] == found["phase"]


def _waiting(reader: StrictReader, found: re.Match[str]) -> None:
    assert (found["workload"], found["cluster"]) in reader.after.placed


def _asked_to_reset(reader: StrictReader, found: re.Match[str]) -> None:
    """Compare the question, or what is told before it."""
    told = found.groupdict()
    deleted, kept = int(told["count"]), int(told["kept"] or 0)
    assert deleted + kept == len(reader.before.objects)
    assert int(told["stops"] or 0) <= len(reader.before.workloads)
    if "hub" not in told:
        assert not reader.writes
        return
    assert (deleted, kept) == (reader.writes["delete"], reader.writes["patch"])
    assert (told["hub"], told["namespace"]) == (reader.hub_name, reader.namespace)


def _goes(reader: StrictReader, found: re.Match[str]) -> None:
    told = set(re.findall(r"(\w+) [\w.-]+/([\w.-]+)", found["names"]))
    assert told <= set(reader.before.objects)


def _deleted(reader: StrictReader, found: re.Match[str]) -> None:
    assert int(found[1]) == reader.writes["delete"] == reader.writes.total()


def _an_object(reader: StrictReader, found: re.Match[str]) -> None:
    for kind, name in re.findall(r'(\w+) "?[\w.-]+"?/"?([\w.-]+)"?', found[0]):
        assert (kind, name) in reader.before.objects


def _no_longer_enforced(reader: StrictReader, found: re.Match[str]) -> None:
    assert int(found["count"]) == len(reader.before.enforced)
    clusters = {cluster for cluster, _ in reader.before.enforced}
    assert set(map(_bare, found["names"].split(", "))) == clusters


def _no_longer_placed(reader: StrictReader, found: re.Match[str]) -> None:
    told = re.findall(r'"?([\w.-]+)"? on "?([\w.-]+)"?', found["pairs"])
    assert set(told) == reader.before.placed


def _runs_on(reader: StrictReader, found: re.Match[str]) -> None:
    told = re.findall(r'"?([\w.-]+)"? on "?([\w.-]+)"?', found["pairs"])
    assert set(told) == reader.before.available


def _held(reader: StrictReader, found: re.Match[str]) -> None:
    assert (found["cluster"], found["policy"]) in reader.before.enforced


def _used(reader: StrictReader, found: re.Match[str]) -> None:
    assert (found["workload"], found["cluster"]) in reader.before.placed


def _advice(_: StrictReader, __: re.Match[str]) -> None:
    """A line that claims nothing about the hub."""


def _bare(name: str) -> str:
    return name.strip('"')


_NAME = r'"?[\w.-]+"?'
_AMOUNTS = (
    r"[Ss]tops? (nothing|(?P<stops>\d+) workloads?),? (and )?"
    r"deletes? (?P<count>\d+) generated objects?"
    r"( and empt(y|ies) (?P<kept>\d+) Placements?)?"
)
_RULES: dict[str, Callable[[StrictReader, re.Match[str]], None]] = {
    r'(?P<counts>Stop \d+.*) of (?P<all>\d+) workloads? on hub "(?P<hub>.+?)",'
    r' namespace "(?P<namespace>.+?)", optimization "default"\?': _at_stake,
    r"Uncovered meanwhile: (\d+) workloads?\.": _uncovered,
    rf"(?P<workload>{_NAME}) (?P<verb>starts|stops|moves|shrinks)(?P<where>[^,;:]*?)"
    r"(: \w+)?(, [+-][\d.]+ [^,;]+)*(; uncovered until its policy is compliant)?\.": _move,
    r"(\d+) workloads? unchanged\.": _unchanged,
    r"Policies change on (?P<count>\d+) clusters? \((?P<names>[^)]*)\)(: GPUs are divided anew, and"
    r" what runs there is uncovered at least 2 minutes)?\.": _policies,
    r"(Proven best|Restores revision \d+ of optimization \S+ as it was recorded):"
    r" (?P<placed>\d+) workloads? placed,"
    r" together worth [\d.]+\.( Totals: .*)?": _verdict,
    r"Objects: (.*)\.": _objects,
    r"Digest: (\w+)": _digest,
    r"Nothing was written\. To apply exactly this plan, .* digest \w+": _nothing_written,
    r"Nothing would be written: .*": _nothing_written,
    r"Applied (\d+) changes?\. Next: follow_rollout\.": _applied,
    r"This plan was applied before, and is in force as PlacementPlan (?P<record>\S+) with its"
    r" (?P<changes>\d+) changes?; nothing was written now\. Next: follow_rollout\.": _repeated,
    r'"plan (?P<digest>\w+) was applied before, as PlacementPlan (?P<record>\S+) of namespace \S+,'
    r" and is not in force: revision (?P<revision>\d+) is (?P<phase>\w+):"
    r' \\"(?P<why>.*)\\"; nothing was written; plan again, or roll back.*"': _not_in_force,
    r"no plan with digest .*; call plan_placement again": _nothing_written,
    r"(?P<landed>\d+) of (?P<placed>\d+) placements of optimization \S+ in namespace \S+"
    r" have landed\.": _landed,
    r"Nothing is placed for optimization \S+ in namespace \S+\.": _nothing_placed,
    r'In force: "revision (?P<revision>\d+)(, which restored revision (?P<restored>\d+))?'
    r' \(plan (?P<digest>\w+)\)"\.': _in_force,
    r'In force: "none: revision (?P<revision>\d+) is (?P<phase>\w+): .*"\.': _none_in_force,
    r'workload \S+: \S+( since \S+)?: "(?P<workload>[\w.-]+) on (?P<cluster>[\w.-]+):'
    r' (Planned|WaitingFor\w+|Refused): .*"\. Next: ".*"': _waiting,
    rf"Nothing was written\. A reset {_AMOUNTS}\.": _asked_to_reset,
    rf'{_AMOUNTS} on hub "(?P<hub>.+?)", namespace "(?P<namespace>.+?)"\?': _asked_to_reset,
    r"(It deletes|It keeps without clusters): (?P<names>\w+ .*)\.": _goes,
    r"Nothing is left to stop in namespace \S+\. It has .*": _nothing_written,
    r"No longer enforced: (?P<count>\d+) polic(y|ies) on (?P<names>.*)\.": _no_longer_enforced,
    r"No plan places any more: (?P<pairs>.*)\.": _no_longer_placed,
    r"These go on running: (?P<pairs>.*); seldom OCM stops one even so\."
    r" A reset with stop_workloads stops them all\.": _runs_on,
    r"Deleted (\d+) generated objects? of namespace \S+\.": _deleted,
    r"(Placement|PlacementBinding|Policy) \S+/\S+(, \w+ \S+/\S+)*": _an_object,
    r"Nothing is generated( for optimization \S+)? in namespace \S+\.": _nothing_written,
    r'"digest \w+ is not that of what a reset of namespace \S+ would delete now; nothing was'
    r' deleted"': _nothing_written,
    r"To do exactly this, .* digest \w+": _advice,
    r'Issue: HeldByOthers: "cluster (?P<cluster>[\w.-]+): .* enforces policy (?P<policy>[\w.-]+)'
    r' .*"': _held,
    r'Issue: UsedByOthers: "cluster (?P<cluster>[\w.-]+): (?P<workload>[\w.-]+) of .* uses'
    r' .*"': _used,
    r"Next: .*": _advice,
}
"""What each line claims; a rule compares it with the hub."""
