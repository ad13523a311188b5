"""What is refused as a contradiction leaves no assignment, and each part is needed: by trying."""

from collections import Counter
from collections.abc import Iterator
from itertools import combinations, product
from time import process_time
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from optimizer.follow.overview.constraints.contradictions import contradiction
from optimizer.follow.overview.constraints.statements import CLUSTER, WORKLOAD, Subject, sentence
from optimizer.wire.object_specs import DrainSpec
from tests.optimizer.build import NOW

CLUSTERS, NAMES = ("x", "y", "z"), ("a", "b", "c")
Stated = dict[tuple[Subject, str], Any]


@st.composite
def statements(draw: st.DrawFn) -> Stated:
    """Few constraints of three workloads, in which each knows of what it shares, and clusters."""
    found: Stated = {}
    some = st.lists(st.sampled_from(CLUSTERS), min_size=1, unique=True).map(tuple)
    fields = {"clusters": some, "excluded_clusters": some, "replicas": st.integers(1, 3)}
    for field in draw(st.lists(st.sampled_from([*fields] * 2), max_size=4)):
        found[Subject(WORKLOAD, draw(st.sampled_from(NAMES))), field] = draw(fields[field])
    for field in ("apart_from", "together_with"):
        for group in draw(st.lists(st.sampled_from([*combinations(NAMES, 2), NAMES]), max_size=1)):
            for name in group:
                others = tuple(other for other in group if other != name)
                found[Subject(WORKLOAD, name), field] = others
    for name in draw(st.lists(st.sampled_from(CLUSTERS), max_size=3)):
        value = draw(st.sampled_from([DrainSpec(), 0, 1, 2]))
        field = "max_workloads" if isinstance(value, int) else "drain"
        found[Subject(CLUSTER, name), field] = value
    return found


def nested(stated: Stated) -> dict[Subject, dict[str, Any]]:
    found: dict[Subject, dict[str, Any]] = {}
    for (subject, field), value in stated.items():
        found.setdefault(subject, {})[field] = value
    return found


def possible(stated: Stated) -> bool:
    """Tell whether all three workloads can have places that keep to all of it, by trying all."""

    def of(name: str, field: str, otherwise: Any) -> Any:
        return stated.get((Subject(WORKLOAD, name), field), otherwise)

    def options(name: str) -> Iterator[frozenset[str]]:
        usable = [
            at
            for at in of(name, "clusters", CLUSTERS)
            if at not in of(name, "excluded_clusters", ())
            and (Subject(CLUSTER, at), "drain") not in stated
        ]
        for size in range(of(name, "replicas", 1), len(usable) + 1):
            yield from map(frozenset, combinations(usable, size))

    most = {at: stated.get((Subject(CLUSTER, at), "max_workloads"), 3) for at in CLUSTERS}
    for chosen in product(*map(options, NAMES)):
        on = dict(zip(NAMES, chosen, strict=True))
        there = Counter(at for places in chosen for at in places)
        apart = all(on[n].isdisjoint(on[i]) for n in NAMES for i in of(n, "apart_from", ()))
        together = all(on[n] <= on[i] for n in NAMES for i in of(n, "together_with", ()))
        if apart and together and all(there[at] <= most[at] for at in CLUSTERS):
            return True
    return False


def refused(before: Stated, after: Stated) -> Stated:
    """Return what is told as a contradiction in a change; empty if it is none."""
    found = contradiction(nested(before), nested(after), CLUSTERS, NOW, len(NAMES))
    if found is None:
        return {}
    said = found.errors[0].message.partition(": this leaves")[0].split("; ")
    return {key: value for key, value in after.items() if sentence(*key, value) in said}


@given(statements(), st.data())
def test_a_refusal_names_an_irreducible_contradiction_in_the_change(
    stated: Stated, data: st.DataObject
) -> None:
    added = data.draw(st.sets(st.sampled_from(sorted(stated))) if stated else st.just(set()))
    before = {key: value for key, value in stated.items() if key not in added}
    told = refused(before, stated)
    if told:
        assert added & told.keys()
        assert not possible(told)
        for one in told:
            assert not refused({}, {key: value for key, value in told.items() if key != one})
    elif {subject.name for subject, _ in stated if subject.kind == WORKLOAD} == {*NAMES}:
        assert possible(stated) or not possible(before)


def test_a_contradiction_of_many_drains_is_found_in_time_in_a_large_fleet() -> None:
    clusters = tuple(f"worker{number:04}" for number in range(5_000))
    drained = {Subject(CLUSTER, name): {"drain": DrainSpec()} for name in clusters[:199]}
    pinned = {**drained, Subject(WORKLOAD, "a"): {"clusters": clusters[:199]}}
    began = process_time()
    found = contradiction(drained, pinned, clusters, NOW, 100)
    assert found
    assert process_time() - began < 1


def test_a_hundred_workloads_that_are_apart_are_compared_in_seconds() -> None:
    names = [f"w{at}" for at in range(100)]
    apart = {
        (Subject(WORKLOAD, name), "apart_from"): tuple(other for other in names if other != name)
        for name in names
    }
    began = process_time()
    found = contradiction({}, nested(apart), names[:50], NOW, len(names))
    assert found is not None
    assert found.errors[0].message.count("shares no cluster") == 51
    assert process_time() - began < 20
