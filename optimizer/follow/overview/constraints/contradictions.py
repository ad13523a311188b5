"""Contradictions: constraints that together leave some workload no place, now, always, or at times.

They are sought among what is stated alone. Whether scores, capacity and constraints together leave
a place is what a plan says, and its explanation.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain, combinations, islice, takewhile
from typing import Any, NamedTuple

from dsf.api.untrusted_text import counted, joined
from optimizer.explain.conflicts.correction_sets import infeasible_subsystem
from optimizer.follow.overview.constraints.distinct_clusters import enough_clusters, kept_apart
from optimizer.follow.overview.constraints.statements import (
    CLUSTER,
    WORKLOAD,
    Statements,
    Subject,
    changed,
    readable,
    sentence,
)
from optimizer.wire.object_specs import NO_END, DrainSpec
from optimizer.wire.request_problem import FieldProblem, RequestProblem, refused_fields

TRIED_SETS = 2000
"""Sets of statements that are tried for a smaller contradiction: at most 0.2 s."""

FOLLOWED_CHANGES = 400
"""Beginnings and ends that are looked at for times without a place, over all different drains."""

MOST_TIMES = 4
"""Contradictions and times without a place that are told, each as long as TRIED_SETS take."""

MOST_NAMED = 5
"""Other constraints that one sentence names."""

OTHER_CONTRADICTIONS = 4
"""Contradictions that are set aside to find one that has certain statements."""

_Key = tuple[Subject, str]
_Stated = Mapping[_Key, Any]


class TimeWithoutPlace(NamedTuple):
    """From when until when a drain, with others, leaves some workload no place, and which."""

    start: datetime
    end: datetime
    why: str


def contradiction(
    before: Statements,
    after: Statements,
    clusters: Collection[str],
    now: datetime,
    workloads: int = 0,
    *,
    remembered: bool = False,
) -> RequestProblem | None:
    """Return a smallest contradiction in what is stated after a change, if the change is in it.

    Without any of its statements the others can hold. That none has fewer statements is known if
    there are at most TRIED_SETS to try. Drains count that hold now; of what is `remembered`, those
    that never end. `workloads`: how many there are, with those that state nothing: one of these at
    least needs a place.
    """
    new = {(subject, field) for subject, own in changed(before, after).items() for field in own}
    stated = {
        key: value
        for key, value in _flat(after).items()
        if key[1] != "drain" or (value.never_ends(now) if remembered else value.drained_until(now))
    }
    stating = len({subject for subject, _ in stated if subject.kind == WORKLOAD})
    found = _smallest(stated, clusters, min(workloads, stating + 1), new)
    if not found:
        return None
    said, none = _told(found, clusters, workloads)
    why = f"{said}: this leaves {none}; leave out a part of it, or forget it"
    wrong, title = FieldProblem("constraints", why), "Constraints contradict each other"
    return refused_fields("ContradictoryConstraints", title, wrong)


def always_without_place(
    statements: Statements, clusters: Collection[str], workloads: int
) -> Mapping[_Key, str]:
    """Return by constraint, but for drains, for how many it leaves no place, and with what.

    Of several contradictions, the first MOST_TIMES.
    """
    stated, told = _undrained(_flat(statements)), dict[_Key, str]()
    for _ in range(MOST_TIMES):
        untold = stated.keys() - told.keys()
        found = _smallest(stated, clusters, workloads, untold) if untold else {}
        if not found:
            break
        _, none = _told(found, clusters, workloads)
        for key in found.keys() - told.keys():
            others = {other: value for other, value in found.items() if other != key}
            because = joined(_sentences(others), MOST_NAMED, separator="; ")
            told[key] = f"{none}{f', because {because}' if because else ''}"
    return told


def times_without_place(
    statements: Statements, clusters: Collection[str], workloads: int, now: datetime
) -> Mapping[Subject, TimeWithoutPlace]:
    """Return by cluster the first time at which its drain, now or later, leaves some no place.

    Empty if there is none among the drains' next beginnings and ends: FOLLOWED_CHANGES, divided by
    the number of different drains. Of several times, the first MOST_TIMES.
    """
    flat, told = _flat(statements), dict[Subject, TimeWithoutPlace]()
    drains = {key[0]: value for key, value in flat.items() if key[1] == "drain"}
    distinct, tried = set(drains.values()), list[set[DrainSpec]]()
    always = not _can_hold(_undrained(flat), clusters, workloads)
    at, held, times = now, set[DrainSpec](), 0
    for _ in range(FOLLOWED_CHANGES // max(1, len(distinct))):
        if at == NO_END or times == MOST_TIMES:
            break
        before, held = held, {item for item in distinct if item.drained_until(at)}
        at, start = min((item.next_change(at) for item in distinct), default=NO_END), at
        if held in tried:
            continue
        tried.append(held)
        stated = {key: value for key, value in flat.items() if key[1] != "drain" or value in held}
        found = _smallest(stated, clusters, workloads, {key for key in stated if key[1] == "drain"})
        ends = {key[0]: drains[key[0]].drained_until(start) for key in found if key[1] == "drain"}
        times += bool(found) or always
        # Of those that take part, the one that begins then.
        new = sorted(ends.keys() - told.keys(), key=lambda name: (drains[name] in before, name))
        if new:
            end = min(filter(None, ends.values()))
            said, none = _told(found, clusters, workloads)
            told[new[0]] = TimeWithoutPlace(start, end, f"{none}: {said}")
    return told


def _flat(statements: Statements) -> _Stated:
    return {
        (subject, field): value
        for subject, fields in readable(statements).items()
        for field, value in fields.items()
    }


def _undrained(stated: _Stated) -> _Stated:
    return {key: value for key, value in stated.items() if key[1] != "drain"}


def _smallest(
    stated: _Stated, clusters: Collection[str], workloads: int, first: Collection[_Key]
) -> _Stated:
    """Return few statements, one of the `first` among them, that leave some workload no place.

    Without any of them the others can hold. None if none are found. `workloads`: how many need a
    place at least, with those that state nothing.
    """

    clusters = frozenset(clusters)

    def possible(held: Iterable[tuple[_Key, Any]]) -> bool:
        return _can_hold(dict(held), clusters, workloads)

    def contradicts(some: Sequence[tuple[_Key, Any]]) -> bool:
        return not possible(some) and possible(item for item in some if item[0] not in first)

    if possible(stated.items()):
        return {}
    every = sorted(stated.items(), key=lambda item: item[0] not in first)
    found = _subsystem(every, first, possible)
    fewer = chain.from_iterable(
        takewhile(lambda some: some[0][0] in first, combinations(every, size))
        for size in range(1, len(found) or len(every) + 1)
    )
    return dict(next((some for some in islice(fewer, TRIED_SETS) if contradicts(some)), found))


def _subsystem(
    every: Sequence[tuple[_Key, Any]],
    first: Collection[_Key],
    possible: Callable[[Iterable[tuple[_Key, Any]]], bool],
) -> Sequence[tuple[_Key, Any]]:
    """Return an irreducible subsystem that has one of the first; empty if it is not found.

    Of each other one that is found before, the last statement is left out.
    """
    held = list(every)
    for _ in range(OTHER_CONTRADICTIONS):
        if possible(held):
            break
        found = infeasible_subsystem(held, possible).members
        if any(key in first for key, _ in found):
            return found
        held.remove(found[-1])
    return ()


def _told(found: _Stated, clusters: Collection[str], workloads: int) -> tuple[str, str]:
    """Return what is stated, and for how many it leaves no place, or too few clusters."""
    said = "; ".join(_sentences(found))
    where = ""
    if {field for _, field in found} & {"apart_from", "replicas"}:
        return said, f"too few of {counted(len(clusters), CLUSTER)}"
    if all(subject.kind == CLUSTER for subject, _ in found):
        room = sum(value for (_, field), value in found.items() if field == "max_workloads")
        where = f" for {workloads - room} of {counted(workloads, WORKLOAD)}"
    return said, f"no place{where}"


def _sentences(found: _Stated) -> Iterator[str]:
    """Yield what is stated; of two workloads that state to be apart from each other, once."""
    apart = set[frozenset[str]]()
    for (subject, field), value in found.items():
        pairs = (
            {frozenset((subject.name, other)) for other in value} if field == "apart_from" else ()
        )
        if not pairs or not apart.issuperset(pairs):
            yield sentence(subject, field, value)
        apart.update(pairs)


def _can_hold(stated: _Stated, clusters: Collection[str], workloads: int) -> bool:
    """Return False if statements leave some workload no place, as far as each follows from others.

    Clusters that a workload must use, because it has no others, are taken from those that it
    shares no cluster with, and count for the most workloads of the cluster. All that may share no
    cluster, and all that count for the most, need enough clusters together. `workloads`: how many
    need a place, with those that state nothing.
    """
    of = defaultdict[str, dict[str, Any]](dict)
    for (subject, field), value in stated.items():
        of[field][subject.name] = value
    pins, most = of["clusters"], of["max_workloads"]
    usable = frozenset(clusters).difference(of["drain"])
    judged = {subject.name for subject, _ in stated if subject.kind == WORKLOAD}
    may = {name: _may_use(name, usable, of) for name in (judged if clusters else pins)}
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
    needed = {name: of["replicas"].get(name, 1) for name in may}
    others = max(0, workloads - len(may))
    if clusters and _room(usable, most) < sum(needed.values()) + others:
        return False
    if not _enough(needed, may, of):
        return False
    together, apart = of["together_with"], of["apart_from"]
    groups = {frozenset((name, *_reached(together, name))) for name in together}
    return all(names.isdisjoint(apart.get(name, ())) for names in groups for name in names)


def _may_use(name: str, usable: frozenset[str], of: Mapping[str, Mapping[str, Any]]) -> set[str]:
    """Return the clusters that a workload may use, each with room for all that it runs with."""
    group = 1 + len(_reached(of["together_with"], name))
    full = {at for at, most in of["max_workloads"].items() if most < group}
    may = set(of["clusters"].get(name, usable)).intersection(usable) - full
    return may.difference(of["excluded_clusters"].get(name, ()))


def _enough(
    needed: Mapping[str, int], may: Mapping[str, set[str]], of: Mapping[str, Mapping[str, Any]]
) -> bool:
    """Tell whether all that may share no cluster, and all together, have clusters enough."""
    apart, most = of["apart_from"], of["max_workloads"]
    alone = {name: min(count, 1) for name, count in most.items()}
    groups = (needed.keys() & names for names in kept_apart(apart))
    return all(
        enough_clusters({name: needed[name] for name in sorted(group)}, may, alone, 1)
        for group in groups
    ) and (not most or enough_clusters(needed, may, most, len(needed)))


def _room(clusters: frozenset[str], most: Mapping[str, int]) -> float:
    """Return how many workloads clusters take."""
    return sum(most[name] for name in clusters) if clusters <= most.keys() else math.inf


def _reached(links: Mapping[str, Iterable[str]], start: str) -> set[str]:
    """Return the workloads that one runs together with, by any number of links."""
    found, new = set[str](), {start}
    while new:
        found |= new
        new = {other for name in new for other in links.get(name, ())} - found
    return found - {start}
