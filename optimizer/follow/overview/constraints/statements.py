"""Constraints that workloads and clusters state: read, added and forgotten."""

import shlex
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from itertools import chain
from typing import Any, NamedTuple

from pydantic.alias_generators import to_camel

from dsf.api.times import rfc3339
from dsf.api.untrusted_text import InvalidInput, UntrustedName, counted, listed
from dsf.kube.port import Object
from optimizer.follow.overview.constraints.constraint_fields import Constraints
from optimizer.follow.overview.fleet_facts import FleetFacts
from optimizer.follow.overview.name_search import Search, find_name
from optimizer.snapshot.annotations import annotation_changes, read_annotations
from optimizer.wire.base import RequestPart
from optimizer.wire.object_specs import NO_END, ClusterSpec, WorkloadSpec
from optimizer.wire.request_problem import FieldProblem, RequestProblem, refused_fields

WORKLOAD, CLUSTER = "workload", "managed cluster"


class Subject(NamedTuple):
    """What states constraints: a `workload` or a `managed cluster`."""

    kind: str
    name: str


Statements = Mapping[Subject, Mapping[str, Any]]
"""What is stated, by the field of the WorkloadSpec or ClusterSpec; None: no longer."""

NamesInFull = Mapping[str, Mapping[str, str]]
"""What each name that was said means, by kind; of `found_names`."""


class _Statement(NamedTuple):
    """A constraint: the field and kind of what states it, the kind that it names, and its words."""

    field: str
    of: str
    names: str
    says: str


_CONSTRAINTS = {
    "apart": _Statement("apart_from", WORKLOAD, WORKLOAD, "shares no cluster with {}"),
    "together": _Statement("together_with", WORKLOAD, WORKLOAD, "runs only together with {}"),
    "pin": _Statement("clusters", WORKLOAD, CLUSTER, "runs only on {}"),
    "exclude": _Statement("excluded_clusters", WORKLOAD, CLUSTER, "never runs on {}"),
    "at_least": _Statement("replicas", WORKLOAD, "", "runs on {} clusters"),
    "at_most": _Statement("max_workloads", CLUSTER, "", "runs at most {}"),
    "drain": _Statement("drain", CLUSTER, "", "runs no workload"),
}
"""By the field of Constraints."""

_SPECS: Mapping[str, type[RequestPart]] = {WORKLOAD: WorkloadSpec, CLUSTER: ClusterSpec}
_FIELDS = {
    kind: {
        key: name for name in spec.model_fields for key in annotation_changes(spec, {name: None})
    }
    for kind, spec in _SPECS.items()
}
"""Field by annotation, by kind."""

_BY_FIELD = {item.field: name for name, item in _CONSTRAINTS.items()}
_MUTUAL = ("apart_from", "together_with")


class Unread(str):
    """The text of an annotation that can't be read; no annotation of its object counts."""


def stated(facts: FleetFacts) -> dict[Subject, dict[str, Any]]:
    """Return the constraints that annotations state, and all annotations that can't be read."""
    return {
        Subject(kind, name): dict(_stated_by(obj, kind))
        for kind, objects in ((WORKLOAD, facts.workloads), (CLUSTER, facts.hub.clusters))
        for name, obj in objects.items()
    }


def _stated_by(obj: Object, kind: str) -> Iterator[tuple[str, Any]]:
    texts = obj["metadata"].get("annotations") or {}
    for key, field in _FIELDS[kind].items():
        if key in texts:
            alone = {"metadata": {"annotations": {key: texts[key]}}}
            read = read_annotations(alone, _SPECS[kind])
            if isinstance(read, InvalidInput):
                yield field, Unread(texts[key])
            elif field in _BY_FIELD:
                yield field, getattr(read, field)


def readable(statements: Statements) -> Statements:
    """Return what is stated by those of which every annotation can be read."""
    return {subject: own for subject, own in statements.items() if not any(unread(own))}


def unread(fields: Mapping[str, Any]) -> Iterator[str]:
    """Yield the constraints that can't be read."""
    yield from (
        constraint_of(field) for field, value in fields.items() if isinstance(value, Unread)
    )


def constraint_of(field: str) -> str:
    """Return the constraint of a field of a workload or cluster, as people say it."""
    return to_camel(_BY_FIELD.get(field, field))


def searches(
    said: Constraints, prefix: str, workloads: Collection[str], clusters: Collection[str]
) -> Iterator[Search]:
    """Yield which names constraints say, and what they may mean."""
    known = {WORKLOAD: workloads, CLUSTER: clusters}
    for name, item in _CONSTRAINTS.items():
        value, field = getattr(said, name), f"{prefix}{to_camel(name)}"
        if isinstance(value, dict):
            yield Search(field, item.of, value, known[item.of])
        if item.names:
            groups = value.values() if isinstance(value, dict) else value
            yield Search(field, item.names, [*chain(*groups)], known[item.names])


def unusable(
    said: Constraints, names: NamesInFull, now: datetime, prefix: str, *, only_now: bool = False
) -> Iterator[FieldProblem]:
    """Yield what is named twice, and drains that are over, or have a schedule without a time zone.

    `only_now`: they are for one plan, so a drain that does not hold now is unusable, too.
    """
    for name, item in _CONSTRAINTS.items():
        value, field = getattr(said, name), f"{prefix}{to_camel(name)}"
        for group in (value,) if isinstance(value, dict) else value:
            times = Counter(names[item.of][key] for key in group)
            for full in (key for key, count in times.items() if count > 1):
                yield FieldProblem(field, f"{UntrustedName(full)} is named more than once")
    for name, drain in said.drain.items():
        wrong, holds = "", drain.drained_until(now) is not None
        if drain.schedule and "time_zone" not in drain.model_fields_set:
            wrong = "say timeZone, such as Europe/Berlin: that of the schedule"
        elif not holds and drain.next_change(now) == NO_END:
            wrong = f"this drain is over, it is {rfc3339(now)}; say a later time"
        elif not holds and only_now:
            wrong = "it does not hold now, and a plan is for now: leave out its times"
        if wrong:
            yield FieldProblem(f"{prefix}drain", f"{UntrustedName(name)}: {wrong}")


def in_full(said: Constraints, names: NamesInFull) -> dict[str, Any]:
    """Return the fields of constraints with names in full."""
    found = dict[str, Any]()
    for name, (_, of, named, _) in _CONSTRAINTS.items():
        value = getattr(said, name)
        if not isinstance(value, dict):
            found[name] = tuple(tuple(map(names[of].__getitem__, group)) for group in value)
            continue
        found[name] = {
            names[of][key]: tuple(map(names[named].__getitem__, part)) if named else part
            for key, part in value.items()
        }
    return found


def with_constraints(before: Statements, said: Constraints) -> dict[Subject, dict[str, Any]]:
    """Return what is stated with constraints whose names are in full."""
    found = defaultdict[Subject, dict[str, Any]](dict)
    found.update({subject: dict(fields) for subject, fields in before.items()})
    added = list[tuple[str, str, Iterable[str]]]()
    for field, groups in zip(_MUTUAL, (said.apart, said.together), strict=True):
        for group in groups:
            added += [(field, name, [one for one in group if one != name]) for name in group]
    added += [("excluded_clusters", *item) for item in said.exclude.items()]
    for field, name, names in added:
        fields = found[Subject(WORKLOAD, name)]
        fields[field] = tuple(dict.fromkeys((*fields.get(field, ()), *names)))
    for name, count in said.at_least.items():
        fields = found[Subject(WORKLOAD, name)]
        fields["replicas"] = max(count, fields.get("replicas", 1))
    for constraint in ("pin", "at_most", "drain"):
        item = _CONSTRAINTS[constraint]
        for name, value in getattr(said, constraint).items():
            found[Subject(item.of, name)][item.field] = value
    return dict(found)


def without_constraints(
    before: Statements, forget: Mapping[str, Iterable[str]]
) -> dict[Subject, dict[str, Any]] | RequestProblem:
    """Return what is stated without some constraints; a problem if something is not stated."""
    found = {subject: dict(fields) for subject, fields in before.items()}
    every = [(subject, field) for subject, fields in before.items() for field in fields]
    constrained = {subject.name for subject, _ in every}
    for said, names in forget.items():
        meant = find_name(said, constrained, field="forget", what="object with constraints")
        if isinstance(meant, RequestProblem):
            return meant
        known = {constraint_of(each[1]): each for each in every if each[0].name == meant}
        if unknown := [name for name in names if name not in known]:
            has = f"{UntrustedName(meant)} has no {listed(unknown)}; it has {listed(known)}"
            wrong = FieldProblem("forget", has, tuple(known))
            return refused_fields("UnknownConstraint", "Nothing of it is remembered", wrong)
        for subject, field in (known[name] for name in tuple(names) or known):
            found[subject].pop(field, None)
            for other in before[subject][field] if field in _MUTUAL else ():
                its = found.get(Subject(WORKLOAD, other), {})
                if isinstance(its.get(field), tuple):
                    left = tuple(name for name in its.pop(field) if name != meant)
                    its.update({field: left} if left else {})
    return found


def changed(before: Statements, after: Statements) -> dict[Subject, dict[str, Any]]:
    """Return the fields that differ, with their new values; None: no longer stated."""
    found = dict[Subject, dict[str, Any]]()
    for subject, fields in after.items():
        old = before.get(subject, {})
        differing = [key for key in (*fields, *old) if fields.get(key) != old.get(key)]
        if differing:
            found[subject] = {key: fields.get(key) for key in differing}
    return found


def annotations(fields: Mapping[str, Any], kind: str) -> dict[str, str | None]:
    """Return the annotations that state changed fields of a workload or cluster."""
    return annotation_changes(_SPECS[kind], fields)


def commands(changes: Statements, namespace: str) -> Iterator[str]:
    """Yield the kubectl commands that write changes."""
    for (kind, name), fields in changes.items():
        what = f"manifestworkreplicaset -n {namespace}" if kind == WORKLOAD else "managedcluster"
        texts = annotations(fields, kind).items()
        said = (f"{key}-" if text is None else shlex.quote(f"{key}={text}") for key, text in texts)
        yield f"kubectl annotate --overwrite {what} {name} {' '.join(said)}"


def sentence(subject: Subject, field: str, value: Any) -> str:
    """Return in words what a workload or cluster states in a field."""
    name = f"{subject.kind} {UntrustedName(subject.name)}"
    if isinstance(value, Unread):
        return f"{name} has a {constraint_of(field)} that can't be read"
    shown = listed(value) if isinstance(value, tuple) else f"{value}"
    if field == "max_workloads":
        shown = counted(value, WORKLOAD)
    return f"{name} {_CONSTRAINTS[_BY_FIELD[field]].says.format(shown)}"
