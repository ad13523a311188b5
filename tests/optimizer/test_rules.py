"""Each rule alone, on decisions written by hand."""

from optimizer.fleet import Fleet
from optimizer.formulate import formulate
from optimizer.rules import (
    RULES,
    Rule,
    capacity,
    one_policy_per_pool,
    replicas,
    supplied,
    violations,
)
from optimizer.solution import Choice, Decision, Place
from tests.optimizer.build import fleet

C1, C2 = "c1", "c2"


def _fleet() -> Fleet:
    devices = [("all", 1), ("3g", 2), ("2g", 4)]
    pairs = [(w, d) for w in ("one", "two") for d, _ in devices]
    scores = {(c, w, d): 1.0 for c in (C1, C2) for w, d in pairs}
    return fleet({C1: devices, C2: devices}, {"one": 2, "two": 2}, scores)


def broken(rule: Rule, *variables: Choice | Place) -> tuple[str, ...]:
    decision = Decision(
        tuple(item for item in variables if isinstance(item, Choice)),
        tuple(item for item in variables if isinstance(item, Place)),
    )
    return violations(formulate(_fleet()), decision, [rule])


def test_one_policy_per_pool() -> None:
    assert broken(one_policy_per_pool, Choice(C1, "3g"), Choice(C2, "3g")) == ()
    assert broken(one_policy_per_pool, Choice(C1, "3g"), Choice(C1, "2g")) == (
        "cluster c1 enforces one policy",
    )


def test_replicas() -> None:
    assert broken(replicas, Place("one", C1, "3g"), Place("two", C1, "3g")) == ()
    assert broken(replicas, Place("one", C1, "3g"), Place("one", C2, "2g")) == (
        "workload one runs once",
    )


def test_capacity() -> None:
    one, two = Place("one", C1, "2g"), Place("two", C1, "2g")
    assert broken(capacity, Choice(C1, "2g"), one, two) == ()
    assert broken(capacity, one) == ("gpu 2g of cluster c1 suffices",)
    crowded = (Place("one", C1, "3g"), Place("two", C1, "3g"))
    assert broken(capacity, Choice(C1, "3g"), *crowded) == ("gpu 3g of cluster c1 suffices",)


def test_supplied() -> None:
    place = Place("one", C1, "3g")
    assert broken(supplied, Choice(C1, "3g"), place) == ()
    assert broken(supplied, Choice(C1, "2g"), place) == ("workload one has 3g on cluster c1",)


def test_what_is_no_candidate_breaks_every_rule_set() -> None:
    assert broken(supplied, Choice(C1, "all")) == (
        "Choice(cluster='c1', policy='all') is no candidate",
    )


def test_a_whole_decision_holds_all_rules() -> None:
    decision = Decision((Choice(C1, "2g"),), (Place("one", C1, "2g"), Place("two", C1, "2g")))
    assert violations(formulate(_fleet()), decision, RULES) == ()
