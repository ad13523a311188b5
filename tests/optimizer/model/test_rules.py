"""Each rule alone, on decisions written by hand."""

from dataclasses import replace
from typing import Any

from optimizer.domain.fleet import (
    CandidatePolicy,
    Cluster,
    Fleet,
    FleetLimit,
    Selector,
    Supply,
    TopologySpread,
)
from optimizer.domain.score_matrix import ScoreMatrix
from optimizer.domain.solution import Assignment, Decision, PolicyEnforcement
from optimizer.model.formulate import formulate
from optimizer.model.rules import (
    RULES,
    Rule,
    capacity,
    limits,
    once_per_cluster,
    one_policy_per_pool,
    replicas,
    spread,
    supplied,
    violations,
    workload_affinity,
    workload_anti_affinity,
)
from tests.optimizer.build import fleet

C1, C2, C3 = "c1", "c2", "c3"
DEVICES = [("all", 1), ("3g", 2), ("2g", 4)]
CORES = (Supply("cpu", "", 4),)


def plain() -> Fleet:
    """Three clusters, the first two in one zone, and two workloads that ask 2 each."""
    clusters = (C1, C2, C3)
    pairs = [(w, d) for w in ("one", "two") for d, _ in DEVICES]
    scores = {(c, w, d): 1.0 for c in clusters for w, d in pairs}
    found = fleet(dict.fromkeys(clusters, DEVICES), {"one": 2, "two": 2}, scores)
    zones = {C1: "a", C2: "a", C3: "b"}
    placed = tuple(replace(c, labels={"zone": zones[c.name]}, base=CORES) for c in found.clusters)
    named = tuple(replace(w, labels={"app": w.app}) for w in found.workloads)
    return replace(found, clusters=placed, workloads=named)


def annotated(given: Fleet | None = None, **constraints: Any) -> Fleet:
    """The fleet with constraints of workload `one`."""
    given = given or plain()
    one, *others = given.workloads
    return replace(given, workloads=(replace(one, **constraints), *others))


def broken(
    rule: Rule, *variables: PolicyEnforcement | Assignment, given: Fleet | None = None
) -> tuple[str, ...]:
    decision = Decision(
        tuple(item for item in variables if isinstance(item, PolicyEnforcement)),
        tuple(item for item in variables if isinstance(item, Assignment)),
    )
    return violations(formulate(given or plain()), decision, [rule])


def test_one_policy_per_pool() -> None:
    assert (
        broken(one_policy_per_pool, PolicyEnforcement(C1, "3g"), PolicyEnforcement(C2, "3g")) == ()
    )
    assert broken(
        one_policy_per_pool, PolicyEnforcement(C1, "3g"), PolicyEnforcement(C1, "2g")
    ) == ("cluster c1 enforces one policy",)


def pooled() -> Fleet:
    """A cluster of two pools; the first one's policies supply two devices at once."""
    mixed = (Supply("gpu", "3g", 1), Supply("gpu", "2g", 2))
    candidates = (
        CandidatePolicy("mixed", mixed, "front"),
        CandidatePolicy("whole", (Supply("gpu", "all", 1),), "front"),
        CandidatePolicy("back", (Supply("gpu", "2g", 1),), "back"),
    )
    given = plain()
    return replace(given, clusters=(Cluster(C1, Selector(C1), candidates),))


def test_a_cluster_enforces_one_policy_of_each_pool() -> None:
    given = annotated(pooled(), amount=1)
    assert (
        broken(
            one_policy_per_pool,
            PolicyEnforcement(C1, "mixed"),
            PolicyEnforcement(C1, "back"),
            given=given,
        )
        == ()
    )
    both = PolicyEnforcement(C1, "mixed"), PolicyEnforcement(C1, "whole")
    assert broken(one_policy_per_pool, *both, given=given) == (
        "pool front of cluster c1 enforces one policy",
    )


def test_replicas() -> None:
    assert broken(replicas, Assignment("one", C1, "3g"), Assignment("two", C1, "3g")) == ()
    twice = Assignment("one", C1, "3g"), Assignment("one", C2, "2g")
    assert broken(replicas, *twice) == ("workload one runs once",)
    assert broken(replicas, *twice, given=annotated(replicas=2)) == ()
    assert broken(replicas, *twice, Assignment("one", C3, "3g"), given=annotated(replicas=2)) == (
        "workload one runs on 2 clusters at most",
    )


def test_once_per_cluster() -> None:
    given = annotated(replicas=2)
    here, there = Assignment("one", C1, "3g"), Assignment("one", C2, "2g")
    assert broken(once_per_cluster, here, there, given=given) == ()
    assert broken(once_per_cluster, here, Assignment("one", C1, "2g"), given=given) == (
        "workload one runs once on cluster c1",
    )


def test_capacity() -> None:
    one, two = Assignment("one", C1, "2g"), Assignment("two", C1, "2g")
    assert broken(capacity, PolicyEnforcement(C1, "2g"), one, two) == ()
    assert broken(capacity, one) == ("gpu 2g of cluster c1 suffices",)
    crowded = (Assignment("one", C1, "3g"), Assignment("two", C1, "3g"))
    assert broken(capacity, PolicyEnforcement(C1, "3g"), *crowded) == (
        "gpu 3g of cluster c1 suffices",
    )


def test_capacity_counts_the_supplies_of_all_pools() -> None:
    given = annotated(pooled(), amount=1)
    mixed, back = PolicyEnforcement(C1, "mixed"), PolicyEnforcement(C1, "back")
    one, two = Assignment("one", C1, "2g"), Assignment("two", C1, "2g")
    assert broken(capacity, mixed, back, one, two, given=given) == ()
    assert broken(capacity, mixed, one, two, given=given) == ("gpu 2g of cluster c1 suffices",)


def test_capacity_of_further_kinds() -> None:
    one, two, policy = (
        Assignment("one", C1, "2g"),
        Assignment("two", C1, "2g"),
        PolicyEnforcement(C1, "2g"),
    )
    both = annotated(requests=(("cpu", 3.0),))
    greedy = replace(
        both, workloads=tuple(replace(w, requests=(("cpu", 3.0),)) for w in both.workloads)
    )
    assert broken(capacity, policy, one, two, given=both) == ()
    assert broken(capacity, policy, one, two, given=greedy) == ("cpu of cluster c1 suffices",)


def test_capacity_of_large_quantities() -> None:
    gibi = 2.0**30
    held = (Supply("memory", "", 16 * gibi),)
    given = plain()
    given = replace(given, clusters=tuple(replace(c, base=held) for c in given.clusters))
    policy, one = PolicyEnforcement(C1, "2g"), Assignment("one", C1, "2g")
    fits = annotated(given, requests=(("memory", 16 * gibi),))
    assert broken(capacity, policy, one, given=fits) == ()
    two = Assignment("two", C1, "2g")
    more = replace(
        fits,
        workloads=(fits.workloads[0], replace(fits.workloads[1], requests=(("memory", gibi),))),
    )
    assert broken(capacity, policy, one, two, given=more) == ("memory of cluster c1 suffices",)


def test_supplied() -> None:
    assignment = Assignment("one", C1, "3g")
    assert broken(supplied, PolicyEnforcement(C1, "3g"), assignment) == ()
    assert broken(supplied, PolicyEnforcement(C1, "2g"), assignment) == (
        "workload one has 3g on cluster c1",
    )


def test_what_a_cluster_has_without_a_policy_needs_none() -> None:
    given = plain()
    held = (Supply("gpu", "3g", 2),)
    given = replace(given, clusters=tuple(replace(c, base=held) for c in given.clusters))
    assert broken(supplied, Assignment("one", C1, "3g"), given=given) == ()
    assert broken(capacity, Assignment("one", C1, "3g"), given=given) == ()


def test_near() -> None:
    given = annotated(workload_affinity="app=two")
    one = Assignment("one", C1, "3g")
    assert broken(workload_affinity, one, Assignment("two", C1, "2g"), given=given) == ()
    assert broken(workload_affinity, Assignment("two", C1, "2g"), given=given) == ()
    assert broken(workload_affinity, one, Assignment("two", C2, "2g"), given=given) == (
        "workload one runs near two on cluster c1",
    )


def test_apart() -> None:
    given = annotated(workload_anti_affinity="app=two")
    one = Assignment("one", C1, "3g")
    assert broken(workload_anti_affinity, one, Assignment("two", C2, "2g"), given=given) == ()
    assert broken(workload_anti_affinity, one, Assignment("two", C1, "2g"), given=given) == (
        "workloads one and two run apart on cluster c1",
    )


def test_workloads_that_all_want_each_other_apart() -> None:
    given = annotated(workload_anti_affinity="app")
    all_ = tuple(replace(w, workload_anti_affinity="app") for w in given.workloads)
    given = replace(given, workloads=all_)
    one = Assignment("one", C1, "3g")
    assert broken(workload_anti_affinity, one, Assignment("two", C2, "2g"), given=given) == ()
    assert broken(workload_anti_affinity, one, Assignment("two", C1, "2g"), given=given) == (
        "workloads one and two run apart on cluster c1",
    )
    assert len(list(workload_anti_affinity(formulate(given)))) == 3


def test_spread_of_one_workload() -> None:
    given = annotated(replicas=3, spread=(TopologySpread("zone", 1),))
    here, near_by, far = (Assignment("one", name, "3g") for name in (C1, C2, C3))
    assert broken(spread, here, far, given=given) == ()
    assert broken(spread, here, near_by, given=given) == (
        "at most 1 of workload one where zone is a",
    )


def test_spread_of_a_group() -> None:
    together = TopologySpread("zone", 1, "pair")
    given = annotated(spread=(together,))
    given = replace(given, workloads=tuple(replace(w, spread=(together,)) for w in given.workloads))
    one = Assignment("one", C1, "3g")
    assert broken(spread, one, Assignment("two", C3, "3g"), given=given) == ()
    assert broken(spread, one, Assignment("two", C2, "3g"), given=given) == (
        "at most 1 of group pair where zone is a",
    )


def test_spread_over_the_clusters_themselves() -> None:
    together = TopologySpread("metadata.name", 1, "pair")
    given = plain()
    given = replace(given, workloads=tuple(replace(w, spread=(together,)) for w in given.workloads))
    one = Assignment("one", C1, "3g")
    assert broken(spread, one, Assignment("two", C2, "3g"), given=given) == ()
    assert broken(spread, one, Assignment("two", C1, "2g"), given=given) == (
        "at most 1 of group pair where metadata.name is c1",
    )


def test_clusters_without_the_label_are_one_value_of_a_spread() -> None:
    given = annotated(replicas=2, spread=(TopologySpread("rack", 1),))
    assert broken(
        spread, Assignment("one", C1, "3g"), Assignment("one", C2, "3g"), given=given
    ) == ("at most 1 of workload one where rack is not set",)


def test_a_budget_on_a_score() -> None:
    costs = {(c, w, d): 4.0 for c in (C1, C2, C3) for w in ("one", "two") for d, _ in DEVICES}
    given = plain()
    given = replace(
        given,
        scores={**given.scores, "cost": ScoreMatrix.of(costs)},
        limits=(FleetLimit("budget", 7.0, score="cost"),),
    )
    one, two = Assignment("one", C1, "3g"), Assignment("two", C2, "3g")
    assert broken(limits, one, given=given) == ()
    assert broken(limits, one, two, given=given) == ("budget is at most 7",)


def test_a_cap_per_site_on_what_workloads_and_policies_use() -> None:
    given = annotated(uses=(("watts", 300.0),))
    hungry = [
        replace(c, candidates=tuple(replace(p, uses=(("watts", 200.0),)) for p in c.candidates))
        for c in given.clusters
    ]
    cap = FleetLimit("power", 600.0, uses="watts", per="zone")
    given = replace(given, clusters=tuple(hungry), limits=(cap,))
    one, here, near_by, far = (
        Assignment("one", C1, "3g"),
        *(PolicyEnforcement(name, "3g") for name in (C1, C2, C3)),
    )
    assert broken(limits, one, here, far, given=given) == ()
    assert broken(limits, one, here, near_by, given=given) == (
        "power where zone is a is at most 600",
    )


def test_a_limit_of_some_clusters_alone() -> None:
    given = annotated(uses=(("watts", 300.0),))
    given = replace(given, limits=(FleetLimit("cap", 100.0, uses="watts", selector="zone=b"),))
    assert broken(limits, Assignment("one", C1, "3g"), given=given) == ()
    assert broken(limits, Assignment("one", C3, "3g"), given=given) == ("cap is at most 100",)


def test_what_is_no_candidate_breaks_every_rule_set() -> None:
    assert broken(supplied, PolicyEnforcement(C1, "all")) == (
        "policy all is not a candidate of cluster c1",
    )


def test_a_whole_decision_holds_all_rules() -> None:
    decision = Decision(
        (PolicyEnforcement(C1, "2g"),), (Assignment("one", C1, "2g"), Assignment("two", C1, "2g"))
    )
    assert violations(formulate(plain()), decision, RULES) == ()


def test_deciding_nothing_is_always_allowed() -> None:
    given = annotated(workload_affinity="app=none", spread=(TopologySpread("zone", 1),))
    given = replace(given, limits=(FleetLimit("none", 0.0, uses="watts"),))
    assert violations(formulate(given), Decision()) == ()
