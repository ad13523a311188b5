"""Constraints that workloads and clusters state: listed, added, forgotten, and contradictions.

A contradiction is sought among what is stated alone. Whether scores, capacity and constraints
together leave a place is what a plan says, and its explanation.
"""

import shlex
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from itertools import chain, combinations, islice, takewhile
from typing import Any, NamedTuple

from pydantic.alias_generators import to_camel

from dsf.api.invalid_input import InvalidInput
from dsf.api.times import rfc3339
from dsf.api.untrusted_text import UntrustedName, listed
from dsf.kube.port import Object
from optimizer.explain.conflicts.unplaced_conflicts import infeasible_subsystem
from optimizer.follow.overview.constraints.constraint_fields import (
    ConstraintList,
    Constraints,
    RememberedConstraint,
)
from optimizer.follow.overview.fleet_facts import FleetFacts
from optimizer.follow.overview.name_search import Search, find_name, found_names
from optimizer.snapshot.annotations import PREFIX, annotation_changes, read_annotations
from optimizer.snapshot.object_readers import until_text
from optimizer.wire.base import RequestPart
from optimizer.wire.object_specs import NO_END, ClusterSpec, DrainSpec, WorkloadSpec
from optimizer.wire.request_problem import (
    FieldProblem,
    RequestProblem,
    invalid_request,
    refused_fields,
)

TRIED_SETS = 2000
"""Sets of statements that are tried for a smaller contradiction: at most 0.2 s."""

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
    "at_most": _Statement("max_workloads", CLUSTER, "", "runs at most {} workloads"),
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
    return {subject: own for subject, own in statements.items() if not any(_unread(own))}


def _unread(fields: Mapping[str, Any]) -> Iterator[str]:
    """Yield the constraints that can't be read."""
    yield from (_said(field) for field, value in fields.items() if isinstance(value, Unread))


def _said(field: str) -> str:
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
    said: Constraints, names: NamesInFull, now: datetime, prefix: str
) -> Iterator[FieldProblem]:
    """Yield what is named twice, and drains that are over."""
    for name, item in _CONSTRAINTS.items():
        value, field = getattr(said, name), f"{prefix}{to_camel(name)}"
        for group in (value,) if isinstance(value, dict) else value:
            times = Counter(names[item.of][key] for key in group)
            for full in (key for key, count in times.items() if count > 1):
                yield FieldProblem(field, f"{UntrustedName(full)} is named more than once")
    for name, drain in said.drain.items():
        if drain.drained_until(now) is None and drain.next_change(now) == NO_END:
            over = f"this drain is over, it is {rfc3339(now)}; say a later time"
            yield FieldProblem(f"{prefix}drain", f"{UntrustedName(name)}: {over}")


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
        known = {_said(each[1]): each for each in every if each[0].name == meant}
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


class ConstraintChange(NamedTuple):
    """What changes, and what is stated then."""

    changes: Statements
    after: Statements


def constraint_change(
    facts: FleetFacts, remember: Constraints, forget: Mapping[str, Iterable[str]]
) -> ConstraintChange | RequestProblem:
    """Return what is to be written so that constraints are kept, and others no longer.

    A problem if a name is not clear, a time is over, or constraints contradict each other.
    """
    now, clusters, before = facts.observation.observed_at, facts.hub.clusters, stated(facts)
    names = found_names(searches(remember, "remember.", facts.workloads, clusters))
    if isinstance(names, RequestProblem):
        return names
    if problems := tuple(unusable(remember, names, now, "remember.")):
        return invalid_request(problems)
    rest = without_constraints(before, forget)
    if isinstance(rest, RequestProblem):
        return rest
    said = Constraints(**in_full(remember, names))
    for subject in with_constraints({}, said):
        if unread := listed(_unread(rest.get(subject, {}))):
            message = f"{UntrustedName(subject.name)}: {unread} can't be read; forget it first"
            return invalid_request((FieldProblem("remember", message),))
    after = with_constraints(rest, said)
    changes = changed(before, after)
    return contradiction(before, after, clusters, now) or ConstraintChange(changes, after)


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


def constraint_list(namespace: str, statements: Statements, now: datetime) -> ConstraintList:
    """Return the constraints that are stated, clusters first."""
    items = (
        _remembered(subject, field, value, now)
        for subject in sorted(statements)
        for field, value in statements[subject].items()
    )
    return ConstraintList(namespace=namespace, items=tuple(items))


def _remembered(subject: Subject, field: str, value: Any, now: datetime) -> RememberedConstraint:
    ((key, text),) = annotations({field: value}, subject.kind).items()
    says, holds = _sentence(subject, field, value), not isinstance(value, Unread)
    if isinstance(value, DrainSpec):
        holds = (end := value.drained_until(now)) is not None
        says += f" {until_text(end)}" if holds else ", but not now"
        says += f" ({text})" if value != DrainSpec() else ""
    return RememberedConstraint(
        kind=subject.kind,
        name=subject.name,
        constraint=_said(field),
        annotation=key.removeprefix(PREFIX),
        value=text or "",
        message=says,
        in_force=holds,
    )


def _sentence(subject: Subject, field: str, value: Any) -> str:
    """Return in words what a workload or cluster states in a field."""
    if isinstance(value, Unread):
        return (
            f"{subject.kind} {UntrustedName(subject.name)} has a {_said(field)} that can't be read"
        )
    shown = listed(value) if isinstance(value, tuple) else f"{value}"
    says = _CONSTRAINTS[_BY_FIELD[field]].says.format(shown)
    return f"{subject.kind} {UntrustedName(subject.name)} {says}"


def contradiction(
    before: Statements, after: Statements, clusters: Collection[str], now: datetime
) -> RequestProblem | None:
    """Return a smallest contradiction in what is stated after a change, if the change is in it.

    Without any of its statements the others can hold. That none has fewer statements is known if
    there are at most TRIED_SETS to try. A drain with an end contradicts nothing.
    """
    stated = {
        (subject, field): value
        for subject, fields in readable(after).items()
        for field, value in fields.items()
        if field != "drain" or value.drained_until(now) == NO_END
    }
    if _can_hold(stated, clusters):
        return None
    new = {(subject, field) for subject, own in changed(before, after).items() for field in own}

    def possible(held: Iterable[tuple[tuple[Subject, str], Any]]) -> bool:
        return _can_hold(dict(held), clusters)

    every = sorted(stated.items(), key=lambda item: item[0] not in new)  # new: if it can, it stays
    found = infeasible_subsystem(every, possible).members
    if new.isdisjoint(dict(found)):
        return None
    fewer = chain.from_iterable(
        takewhile(lambda some: some[0][0] in new, combinations(every, size))
        for size in range(1, len(found))
    )
    found = next((some for some in islice(fewer, TRIED_SETS) if not possible(some)), found)
    said = "; ".join(_sentence(*key, value) for key, value in found)
    wrong = FieldProblem(
        "constraints", f"{said}: this leaves no place; leave out a part of it, or forget it"
    )
    return refused_fields("ContradictoryConstraints", "Constraints contradict each other", wrong)


def _can_hold(stated: Mapping[tuple[Subject, str], Any], clusters: Collection[str]) -> bool:
    """Return False if statements leave some workload no place, as far as each follows from others.

    Clusters that a workload must use, because it has no others, are taken from those that it
    shares no cluster with, and count for the most workloads of the cluster.
    """
    of = defaultdict[str, dict[str, Any]](dict)
    for (subject, field), value in stated.items():
        of[field][subject.name] = value
    pins, excluded, most = of["clusters"], of["excluded_clusters"], of["max_workloads"]
    usable = set(clusters).difference(of["drain"])
    judged = {subject.name for subject, _ in stated if subject.kind == WORKLOAD}
    may = {
        name: usable.intersection(pins.get(name, usable)).difference(excluded.get(name, ()))
        for name in (judged if usable else pins)
    }
    size = -1
    while size != (size := sum(map(len, may.values()))):
        spare = {name: len(at) - of["replicas"].get(name, 1) for name, at in may.items()}
        must = {name: set(at) for name, at in may.items() if not spare[name]}
        used = Counter(chain.from_iterable(must.values()))
        if min(spare.values(), default=0) < 0 or any(used[name] > most[name] for name in most):
            return False
        full = {name for name in most if used[name] == most[name]}
        for name, at in may.items():
            at.difference_update(full - must.get(name, set()))
            for other in of["together_with"].get(name, ()):
                at.intersection_update(may.get(other, at))
            for other in of["apart_from"].get(name, ()):
                at.difference_update(must.get(other, ()))
                may.get(other, set()).difference_update(must.get(name, ()))
    together = {name: _reached(of["together_with"], name) for name in of["apart_from"]}
    return all(names.isdisjoint(of["apart_from"][name]) for name, names in together.items())


def _reached(links: Mapping[str, Iterable[str]], start: str) -> set[str]:
    """Return the workloads that one runs together with, by any number of links."""
    found, new = set[str](), {start}
    while new:
        found |= new
        new = {other for name in new for other in links.get(name, ())} - found
    return found - {start}
