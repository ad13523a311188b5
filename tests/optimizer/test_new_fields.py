"""Every field of a spec is handled in each necessary place; a failure names the missing one.

CONTRIBUTING.md, "Add a constraint", follows these tests.
"""

import inspect
import random
import re
from collections.abc import Hashable, Iterator
from dataclasses import fields, replace
from typing import Any

import pytest
from pydantic.alias_generators import to_camel

from dsf.kube.port import Object
from optimizer.domain.fleet import CandidatePolicy, Cluster, Fleet, Workload
from optimizer.explain.conflicts.limits import RequiredReplicas
from optimizer.explain.conflicts.relaxable_limits import relaxable_limits
from optimizer.model import rules
from optimizer.model.formulate import formulate
from optimizer.model.predicates import PREDICATES
from optimizer.model.problem import Problem
from optimizer.model.rules import Row
from optimizer.model.symmetry import cluster_forms, relaxation_keys, workload_keys
from optimizer.plan.basis import basis_of
from optimizer.snapshot.annotations import PREFIX
from optimizer.snapshot.observation import Observation
from optimizer.wire.base import RequestPart
from optimizer.wire.object_specs import ClusterSpec, PolicySpec, WorkloadSpec
from tests.optimizer.brute_force import DEFINITIONS
from tests.optimizer.build import body, guide, managed_cluster, read_fleet, request, workload
from tests.optimizer.random_problems import draw_fleet
from tests.repository import ROOT

EXAMPLES: dict[type[RequestPart], dict[str, str]] = {
    WorkloadSpec: {
        "replicas": "2",
        "devices": "3g.48gb",
        "priority": "3",
        "requests": "cpu=1",
        "spread": "zone=2",
        "spread_group": "group",
        "clusters": "worker01",
        "excluded_clusters": "worker01",
        "affinity": "zone=a",
        "anti_affinity": "zone=a",
        "workload_affinity": "app=app01",
        "workload_anti_affinity": "app=app01",
        "apart_from": "second",
        "together_with": "second",
        "minimum_score": "61",
        "move_cost": "7",
        "uses": "power=300",
        "tolerations": "soft",
    },
    PolicySpec: {
        "pool": "other",
        "cluster": "worker02",
        "supplies": "gpu/3g.48gb=1,cpu=8",
        "layouts": "0=2x3g.48gb",
        "change_cost": "5",
        "uses": "power=300",
        "tolerations": "soft",
    },
    ClusterSpec: {
        "allocatable": "cpu=4",
        "capacity_source": "Stated",
        "packing": "BestFit",
        "drain": "always",
        "max_workloads": "1",
    },
}
"""For each field the text of an annotation that changes the decision."""

LISTS = {WorkloadSpec: "targetWorkloads", PolicySpec: "availablePolicies", ClusterSpec: "clusters"}
BASE = {"spread": "zone=1", "requests": "memory=1"}
LIMITS = [{"name": "power", "maximum": 500, "uses": "power"}]
EVERY_FIELD = [(spec, name) for spec in EXAMPLES for name in spec.model_fields]
OF_CLUSTERS = [(spec, name) for spec, name in EVERY_FIELD if spec is not WorkloadSpec]

NO_PARAMETER = {
    "packing": "it speaks of nodes, and these clusters have none that are known",
    "layouts": "the transition reads the layouts, the integer program does not",
    "capacity_source": "without an inventory there is one source",
    "tolerations": "a candidate that OCM can't select for is left out before",
}
"""Fields of policies and clusters that no rule and no value reads."""

NOT_DRAWN = {
    "kind",
    "layouts",
    "declared_layouts",
    "enforced",
    "no_new_policies",
    "tolerations",
    "used_by_others",
    "nodes",
    "device_classes",
    "packing",
    "pods",
    "capacity_source",
}
"""Workloads of random problems ask for gpu; the other fields are no part of an integer program."""

NO_LIMIT = {
    "packing": "these clusters have no nodes that are known",
    "pool": "the other candidates of the pool still exclude each other",
    "replicas": "the conflict is about one more replica",
    "priority": "it keeps no workload out",
    "move_cost": "it keeps no workload out",
    "change_cost": "it keeps no workload out",
    "layouts": "it keeps no workload out",
    "capacity_source": "without an inventory there is one source",
    "uses": "the limit of the request has the name",
    "tolerations": "the limit speaks of the clusters that are not tolerated",
}
"""Fields that keep no workload from running."""


def example(spec: type[RequestPart], name: str) -> str:
    assert name in EXAMPLES[spec], f"EXAMPLES has no value of the new field {spec.__name__}.{name}"
    return EXAMPLES[spec][name]


def annotated(obj: Object, **texts: str) -> Object:
    own = {PREFIX + key.replace("_", "-"): text for key, text in texts.items()}
    annotations = {**obj["metadata"].get("annotations", {}), **own}
    return {**obj, "metadata": {**obj["metadata"], "annotations": annotations}}


def base() -> Observation:
    """Two workloads that are interchangeable, on two clusters that differ by a label."""
    pair = (annotated(workload(name, "app01", 2, name), **BASE) for name in ("first", "second"))
    clusters = (
        annotated(managed_cluster(name, cluster_name=name, zone=zone), allocatable="memory=9")
        for name, zone in (("worker01", "a"), ("worker02", "b"))
    )
    first, second = clusters
    first["spec"]["taints"] = [{"key": "soft", "effect": "PreferNoSelect"}]
    return replace(guide(), workloads=tuple(pair), managed_clusters=(first, second))


def with_annotation(spec: type[RequestPart], name: str) -> Observation:
    given, text = base(), {name: example(spec, name)}
    kind = {WorkloadSpec: "workloads", PolicySpec: "policies", ClusterSpec: "managed_clusters"}[
        spec
    ]
    first, *others = getattr(given, kind)
    return replace(given, **{kind: (annotated(first, **text), *others)})


def read(observation: Observation, body_: dict[str, Any] | None = None) -> Fleet:
    given = body_ or body(workloads=("first", "second"))
    return read_fleet(observation, request(**{**given, "limits": LIMITS}))


def in_request(spec: type[RequestPart], name: str) -> Fleet:
    given = body(workloads=("first", "second"))
    first = given["clusters"][0] if spec is PolicySpec else given
    entry = next(
        item
        for item in first[LISTS[spec]]
        if spec is not PolicySpec or item["name"] == base().policies[0]["metadata"]["name"]
    )
    entry[to_camel(name)] = example(spec, name)
    return read(base(), given)


def facts(fleet: Fleet) -> tuple[object, ...]:
    return fleet.clusters, fleet.workloads


def same(problem: Problem, other: Problem) -> bool:
    pairs = ((getattr(problem, item.name), getattr(other, item.name)) for item in fields(Problem))
    return all(repr(one) == repr(two) for one, two in pairs)


@pytest.mark.parametrize(("spec", "name"), EVERY_FIELD)
def test_an_annotation_changes_the_fleet(spec: type[RequestPart], name: str) -> None:
    changed = read(with_annotation(spec, name))
    assert facts(changed) != facts(read(base())), f"no reader uses {spec.__name__}.{name}"


@pytest.mark.parametrize(("spec", "name"), EVERY_FIELD)
def test_a_field_of_the_request_says_the_same_as_the_annotation(
    spec: type[RequestPart], name: str
) -> None:
    assert facts(in_request(spec, name)) == facts(read(with_annotation(spec, name)))


@pytest.mark.parametrize(("spec", "name"), EVERY_FIELD)
def test_a_field_changes_the_problem(spec: type[RequestPart], name: str) -> None:
    if spec is not WorkloadSpec and name in NO_PARAMETER:
        pytest.skip(NO_PARAMETER[name])
    changed = formulate(read(with_annotation(spec, name)))
    assert not same(changed, formulate(read(base()))), f"formulate() does not use {name}"


@pytest.mark.parametrize("name", WorkloadSpec.model_fields)
def test_workloads_that_differ_in_a_field_are_not_interchangeable(name: str) -> None:
    one, two = workload_keys(formulate(read(base()))).values()
    assert one == two
    keys = workload_keys(formulate(read(with_annotation(WorkloadSpec, name))))
    assert len(keys) < 2 or len(set(keys.values())) == 2, f"workload_keys() leaves out {name}"


@pytest.mark.parametrize("name", WorkloadSpec.model_fields)
def test_workloads_that_differ_in_a_field_are_not_interchangeable_in_a_relaxation(
    name: str,
) -> None:
    def keys(observation: Observation) -> set[Hashable]:
        fleet = read(observation)
        return set(relaxation_keys(fleet, {}, {"app01"}).values())

    many = 1 if name in {"priority", "move_cost"} else 2  # these change only what is worth more
    found = keys(with_annotation(WorkloadSpec, name))
    assert len(found) == many, f"relaxation_keys() leaves out {name}"


@pytest.mark.parametrize(("spec", "name"), OF_CLUSTERS)
def test_clusters_that_differ_in_a_field_are_not_interchangeable(
    spec: type[RequestPart], name: str
) -> None:
    def keys(observation: Observation) -> list[Hashable]:
        found = formulate(replace(read(observation), objectives=()))
        return [form.key for form in cluster_forms(replace(found, labels={}))]

    if name in NO_PARAMETER:
        pytest.skip(NO_PARAMETER[name])
    one, two = keys(base())
    assert one == two
    one, two = keys(with_annotation(spec, name))
    assert one != two, f"cluster_forms() leaves out {spec.__name__}.{name}"


@pytest.mark.parametrize(("spec", "name"), EVERY_FIELD)
def test_a_conflict_can_name_the_limit_of_a_field(spec: type[RequestPart], name: str) -> None:
    def messages(observation: Observation) -> list[str]:
        fleet = read(observation)
        required = RequiredReplicas("first", {"first": 1, "second": 1})
        return [item.message for item in relaxable_limits(fleet, required)]

    if name in NO_LIMIT:
        pytest.skip(NO_LIMIT[name])
    changed = messages(with_annotation(spec, name))
    assert changed != messages(base()), f"no relaxable limit speaks of {spec.__name__}.{name}"


@pytest.mark.parametrize(("spec", "name"), EVERY_FIELD)
def test_a_plan_is_stale_once_a_field_changes(spec: type[RequestPart], name: str) -> None:
    before, after = read(base()), read(with_annotation(spec, name))
    assert basis_of(before, {}) != basis_of(after, {})


@pytest.mark.parametrize("part", [Workload, CandidatePolicy, Cluster])
def test_random_problems_have_every_field(part: type) -> None:
    rng = random.Random(0)  # noqa: S311 - to repeat
    fleets = [draw_fleet(rng, clusters=3, workloads=4) for _ in range(40)]
    clusters = [item for fleet in fleets for item in fleet.clusters]
    drawn: dict[type, list[Any]] = {
        Workload: [item for fleet in fleets for item in fleet.workloads],
        CandidatePolicy: [item for cluster in clusters for item in cluster.candidates],
        Cluster: clusters,
    }
    values = {
        item.name: {repr(getattr(one, item.name)) for one in drawn[part]} for item in fields(part)
    }
    same = {name for name, found in values.items() if len(found) < 2} - NOT_DRAWN
    assert same == set(), "tests/optimizer/random_problems.py draws one value of these"


def test_every_rule_is_listed_and_defined_a_second_time() -> None:
    written = {
        name
        for name, item in vars(rules).items()
        if inspect.isfunction(item) and item.__annotations__.get("return") == Iterator[Row]
    }
    assert written == {rule.__name__ for rule in rules.RULES}, "LOCAL_RULES, COUPLING_RULES"
    assert written == set(DEFINITIONS), "DEFINITIONS in tests/optimizer/brute_force.py"


def test_every_reason_of_a_predicate_is_documented() -> None:
    documented = (ROOT / "docs/reference/optimizer-issues.md").read_text(encoding="utf-8")
    unknown = {reason for reason in PREDICATES if f"`{reason}`" not in documented}
    assert unknown == set(), "docs/reference/optimizer-issues.md lacks these reasons"


def test_a_constraint_on_one_workload_is_named_in_at_most_four_product_files() -> None:
    """Its declaration, its value in the fleet, its predicate, and the limit of a conflict."""
    folders = [ROOT / name for name in ("dsf", "optimizer", "mcp_server")]
    named = {
        str(path.relative_to(ROOT))
        for folder in folders
        for path in folder.rglob("*.py")
        if re.search(r"\banti_affinity\b", path.read_text(encoding="utf-8"))
    }
    assert len(named) <= 4, named
