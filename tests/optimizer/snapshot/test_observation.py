"""The current state is read from the generated objects."""

from dataclasses import replace

import pytest

from dsf.kube import kinds
from optimizer.domain.fleet import Cluster, Fleet, Selector, Workload
from optimizer.domain.solution import Assignment, Decision, PolicyEnforcement
from optimizer.plan.manifests import manifests
from optimizer.snapshot.observation import Observation, read_current_decisions
from tests.optimizer.build import obj

DECISION = Decision(
    (PolicyEnforcement("a", "p1"), PolicyEnforcement("b", "p2")),
    (Assignment("w", "a", "d"), Assignment("w", "b", "d"), Assignment("v", "c", "d")),
)


def generated(selectors: dict[str, Selector]) -> Observation:
    fleet = Fleet(
        "default",
        tuple(Cluster(name, selector, ()) for name, selector in selectors.items()),
        tuple(Workload(name, name, "gpu", 1, f"{name}-placement") for name in ("w", "v")),
        {},
        (),
    )
    objects = manifests(fleet, DECISION, claim_name="claim")
    return Observation(
        placements=tuple(item for item in objects if item["kind"] == "Placement"),
        bindings=tuple(item for item in objects if item["kind"] == "PlacementBinding"),
    )


@pytest.mark.parametrize(
    "keys",
    [("name", "name", "name"), ("", "", ""), ("name", "", ""), ("cluster-name", "name", "name")],
)
def test_what_was_generated_says_what_runs(keys: tuple[str, ...]) -> None:
    selectors = {name: Selector(name, key) for name, key in zip(("a", "b", "c"), keys, strict=True)}
    found = read_current_decisions(generated(selectors), selectors, "default")
    assert set(found.placements["w-placement"]) == {"a", "b"}
    assert found.placements["v-placement"] == ("c",)
    assert found.policies == {PolicyEnforcement("a", "p1"), PolicyEnforcement("b", "p2")}


def test_what_others_made_says_nothing() -> None:
    selectors = {name: Selector(name, "name") for name in ("a", "b", "c")}
    observation = generated(selectors)
    foreign = [
        {**item, "metadata": {**item["metadata"], "labels": {}}} for item in observation.placements
    ]
    found = read_current_decisions(
        replace(observation, placements=tuple(foreign)), selectors, "default"
    )
    assert (found.placements, found.policies) == ({}, frozenset())


def test_a_placement_of_another_form_names_no_cluster() -> None:
    labels = {"dynamic-scoring-framework-mcp/generated": "true"}
    odd = obj(kinds.PLACEMENT, "odd", "default", labels=labels, spec={"predicates": None})
    found = read_current_decisions(Observation(placements=(odd,)), {}, "default")
    assert found.placements == {"odd": ()}
