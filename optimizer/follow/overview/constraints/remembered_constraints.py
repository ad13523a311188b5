"""The constraints that are remembered: listed, and what a change of them writes."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from dsf.api.untrusted_text import UntrustedName, listed
from optimizer.follow.overview.constraints.constraint_fields import (
    ConstraintList,
    Constraints,
    RememberedConstraint,
)
from optimizer.follow.overview.constraints.contradictions import (
    TimeWithoutPlace,
    always_without_place,
    contradiction,
    times_without_place,
)
from optimizer.follow.overview.constraints.statements import (
    Statements,
    Subject,
    Unread,
    annotations,
    changed,
    constraint_of,
    in_full,
    searches,
    sentence,
    stated,
    unread,
    unusable,
    with_constraints,
    without_constraints,
)
from optimizer.follow.overview.fleet_facts import FleetFacts
from optimizer.follow.overview.name_search import found_names
from optimizer.snapshot.annotations import PREFIX
from optimizer.snapshot.object_readers import until_text
from optimizer.wire.object_specs import NO_END, DrainSpec
from optimizer.wire.request_problem import FieldProblem, RequestProblem, invalid_request


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
        if wrong := listed(unread(rest.get(subject, {}))):
            message = f"{UntrustedName(subject.name)}: {wrong} can't be read; forget it first"
            return invalid_request((FieldProblem("remember", message),))
    after = with_constraints(rest, said)
    changes = changed(before, after)
    refused = contradiction(before, after, clusters, now, len(facts.workloads), remembered=True)
    return refused or ConstraintChange(changes, after)


def constraint_list(facts: FleetFacts, statements: Statements) -> ConstraintList:
    """Return the constraints that are stated, clusters first."""
    now, workloads = facts.observation.observed_at, len(facts.workloads)
    conflicts = times_without_place(statements, facts.hub.clusters, workloads, now)
    always = always_without_place(statements, facts.hub.clusters, workloads)
    items = (
        _remembered(
            subject, field, value, now, conflicts.get(subject), always.get((subject, field), "")
        )
        for subject in sorted(statements)
        for field, value in statements[subject].items()
    )
    return ConstraintList(namespace=facts.namespace, items=tuple(items))


def _remembered(
    subject: Subject,
    field: str,
    value: Any,
    now: datetime,
    conflict: TimeWithoutPlace | None,
    always: str,
) -> RememberedConstraint:
    ((key, text),) = annotations({field: value}, subject.kind).items()
    says, holds = sentence(subject, field, value), not isinstance(value, Unread)
    if always:
        says += f"; it leaves {always}"
    if isinstance(value, DrainSpec):
        says, holds = f"{says}{_when(value, now)}", value.drained_until(now) is not None
        zone = "; its times are UTC" if value.schedule and "timeZone" not in f"{text}" else ""
        if conflict:
            says += f"; {_period(conflict.start, conflict.end, value)} it leaves {conflict.why}"
        says += f" ({text}{zone})" if value != DrainSpec() else ""
    return RememberedConstraint(
        kind=subject.kind,
        name=subject.name,
        constraint=constraint_of(field),
        annotation=key.removeprefix(PREFIX),
        value=text or "",
        message=says,
        in_force=holds,
    )


def _when(drain: DrainSpec, now: datetime) -> str:
    """Return until when a drain holds, or when it does next."""
    if end := drain.drained_until(now):
        again = end != NO_END and drain.drained_until(end)
        return f" {until_text(end)}{', and again from then' if again else ''}"
    start = drain.next_change(now)
    while start != NO_END and not (end := drain.drained_until(start)):
        start = drain.next_change(start)
    return f", but not now: next {_period(start, end, drain)}" if end else ", but no longer"


def _period(start: datetime, end: datetime, drain: DrainSpec) -> str:
    """Return a period in the time zone of a drain, in words."""
    zone, form = ZoneInfo(drain.time_zone), "%Y-%m-%d %H:%M"
    begins = f"from {start.astimezone(zone):{form}}"
    if end == NO_END:
        return f"{begins} {zone} {until_text(end)}"
    return f"{begins} to {end.astimezone(zone):{form}} {zone}"
