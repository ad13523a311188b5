"""Completes a request that names little: scores in words, everything that carries the labels."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from dsf.api.names import score_object_name
from dsf.api.untrusted_text import listed
from optimizer.domain.fleet import CandidatePolicy
from optimizer.domain.issue import Issue
from optimizer.domain.nodes import GPU_KIND
from optimizer.follow.overview.constraints.statements import (
    CLUSTER,
    WORKLOAD,
    Statements,
    Subject,
    searches,
)
from optimizer.follow.overview.fleet_facts import FleetFacts
from optimizer.follow.overview.name_search import Search
from optimizer.follow.overview.plan_request import PartialRequest, with_namespace
from optimizer.follow.overview.question_names import NamesMeant, names_meant
from optimizer.follow.overview.what_if import PretendedObjects, WhatIf, policy_of_copy
from optimizer.follow.record.plan_history import ObjectiveInForce, RequestInForce
from optimizer.plan.generated_objects import selects_no_cluster
from optimizer.snapshot.added_gpus import requested_fields
from optimizer.snapshot.object_readers import generated_by, name_of, placements_of, read_policy
from optimizer.snapshot.scores.score_meanings import inverted_ends
from optimizer.wire.request import OptimizeRequest
from optimizer.wire.request_problem import (
    FieldProblem,
    RequestProblem,
    dry_request,
    invalid_request,
    refused_fields,
)

MAX_NAMED = 10
"""Existing names that one refusal spells out."""

UNSTATED: Mapping[str, Any] = {"mig": {"discover": True, "keepAdvertised": True}}
"""The field by which policies are generated where people wrote none and no agent reports nodes."""


class PlanningQuestion(NamedTuple):
    """A request, and what the hub is pretended to have; None: nothing is pretended.

    `objective`: where its objective is from; None if it was said. `left_out`: the workloads that it
    leaves to PlacementOptimizations. `issues`: what its answer says besides those of the plan.
    """

    request: OptimizeRequest
    pretended: PretendedObjects | None = None
    objective: ObjectiveInForce | None = None
    left_out: Collection[str] = ()
    issues: tuple[Issue, ...] = ()


def whole_request(partial: PartialRequest) -> PlanningQuestion | RequestProblem:
    """Return the question of a partial request that is whole, and names its namespace."""
    request = dry_request({"namespace": partial.namespace, **partial.further})
    return request if isinstance(request, RequestProblem) else PlanningQuestion(request)


def complete_question(
    facts: FleetFacts,
    partial: PartialRequest,
    in_force: RequestInForce | None = None,
    elsewhere: Collection[str] = (),
) -> PlanningQuestion | RequestProblem:
    """Return the request that completes a partial one; a problem if a name is unknown or ambiguous.

    One that names some workloads only does not remove the others. One without an objective has
    that of the request in force. `elsewhere`: the workloads that another PlacementOptimization
    names, and keeps.
    """
    settled = with_namespace(replace(partial, namespace=facts.namespace))
    meant = settled if isinstance(settled, RequestProblem) else names_meant(facts, partial)
    if isinstance(meant, RequestProblem):
        return meant
    further, what_if, fields = partial.further, meant.what_if, meant.fields
    taken = in_force if partial.needs_objective else None
    if partial.needs_objective and taken is None:
        return _no_objective(facts)
    body: dict[str, Any] = {"prune": not (meant.workloads or "targetWorkloads" in further)}
    if "clusters" not in further:
        found = _clusters(facts, meant.clusters or tuple(facts.hub.clusters), what_if)
        clusters = [_with_fields(item, CLUSTER, fields) for item in found]
        body["clusters"] = clusters
        if not any(item["availablePolicies"] for item in clusters):
            body |= UNSTATED
    left_out = frozenset[str]()
    if "targetWorkloads" not in further:
        left_out = _left_out(facts, partial.optimization, meant, elsewhere)
        body |= _targets(facts, meant, what_if, left_out)
    aggregated = {"aggregation": partial.aggregation} if partial.aggregation else {}
    preferences = [{**_preference(facts, *item), **aggregated} for item in meant.weights]
    if preferences:
        body |= {"preference": preferences[0], "objectives": preferences[1:]}
    elif taken:
        body |= taken.objective
    body |= {**further, "namespace": facts.namespace}
    body["limits"] = _limits(further.get("limits", []), meant.budget)
    request = dry_request(body)
    if isinstance(request, RequestProblem):
        return request
    without_effect = tuple(_without_effect(what_if, request, meant.clusters or facts.hub.clusters))
    if without_effect:
        return invalid_request(without_effect)
    objective = taken.taken_objective(request) if taken else None
    now = facts.observation.observed_at
    pretended = what_if.pretended(facts.namespace, facts.workloads, now)
    return PlanningQuestion(request, pretended, objective, left_out)


def _without_effect(
    what_if: WhatIf, request: OptimizeRequest, candidates: Collection[str]
) -> Iterator[FieldProblem]:
    """Yield what is said of clusters, workloads and scores that the plan is not about.

    `candidates`: the clusters of the question before some are lost.
    """
    workloads = {item.name for item in request.target_workloads}
    clusters, scores = request.cluster_names, request.score_names
    of_scores = [item.cluster for item in what_if.scores]
    of_policies = [name for item in what_if.policies for name in item.clusters]
    changed = [item.score for item in what_if.scores if score_object_name(item.score) not in scores]
    named = (
        Search("what_if.lose", CLUSTER, what_if.lose, candidates),
        *searches(what_if, "what_if.", workloads, clusters),
        Search("what_if.scores", CLUSTER, of_scores, clusters),
        Search("what_if.policies", CLUSTER, of_policies, clusters),
        Search("what_if.scores", "score", changed, ()),
    )
    for field, what, names, known in named:
        if outside := dict.fromkeys(name for name in names if name not in known):
            said = f"{listed(outside, MAX_NAMED)}: no {what.removeprefix('managed ')}"
            yield FieldProblem(field, f"{said} of this question, so it changes nothing")


def policies_of(facts: FleetFacts, cluster: str) -> tuple[CandidatePolicy, ...]:
    """Return the policies that a managed cluster may enforce, by name.

    A policy is made for the cluster that its annotation names, or else that its name ends with
    after a `-`; one that names no cluster may be enforced on each.
    """
    own, any_cluster = (facts.policies_by_cluster.get(key, ()) for key in (cluster, ""))
    found = (read_policy(obj, cluster) for obj in sorted((*own, *any_cluster), key=name_of))
    return tuple(item for item in found if isinstance(item, CandidatePolicy))


def _no_objective(facts: FleetFacts) -> RequestProblem:
    names = tuple(facts.scores)
    message = f"name the score to maximise; there is {listed(names[:MAX_NAMED]) or 'none'}"
    missing = FieldProblem("objective", message, names[:MAX_NAMED])
    return refused_fields("NoObjective", "No objective was named", missing)


def _preference(facts: FleetFacts, name: str, weight: float) -> dict[str, Any]:
    """Return a score that decides; one of which less is better counts so, above no place."""
    scorer = facts.scorer_of(name)
    preference = {"addonPlacementScore": name, "weight": weight}
    if scorer is None or scorer.direction != "LowerIsBetter":
        return preference
    least, most = inverted_ends(scorer.published)
    return {**preference, "invert": True, "minimum": least, "maximum": most}


def _limits(said: Any, budget: Iterable[tuple[str, float]]) -> Any:
    """Return the limits that were said, and those of budgets; what is no list is refused later."""
    added = [
        {"name": f"budget-{name}"[:100], "maximum": most, "score": {"addonPlacementScore": name}}
        for name, most in budget
    ]
    return [*said, *added] if isinstance(said, list) else said


def _clusters(facts: FleetFacts, names: Sequence[str], what_if: WhatIf) -> Iterator[dict[str, Any]]:
    for name in names:
        if name not in what_if.lose:
            policies = [item.policy for item in policies_of(facts, name)]
            yield _cluster(name, [*policies, *_new_policies(what_if, name)])
    for added in what_if.add:
        policies = [
            policy_of_copy(item.policy, added.name, added.like) or item.policy
            for item in policies_of(facts, added.like)
            if not (added.gpus and GPU_KIND in {supply.kind for supply in item.supplies})
        ]
        policies += _new_policies(what_if, added.name)
        like = facts.hub.clusters[added.like]
        fields = requested_fields(like, added.nodes) if added.gpus else {}
        yield {**_cluster(added.name, policies), **fields}


def _new_policies(what_if: WhatIf, cluster: str) -> list[str]:
    return [i.name for i in what_if.policies if not i.clusters or cluster in i.clusters]


def _cluster(name: str, policies: Iterable[str]) -> dict[str, Any]:
    return {"name": name, "availablePolicies": [{"name": policy} for policy in policies]}


def _left_out(
    facts: FleetFacts, optimization: str, meant: NamesMeant, elsewhere: Collection[str]
) -> frozenset[str]:
    """Return the workloads kept elsewhere that a question which names none leaves out.

    What its optimization places is its own, or the plan would stop it. Where nothing would be left
    to plan, nothing is left out.
    """
    if meant.workloads or meant.what_if.run:
        return frozenset()
    placing = generated_by(facts.observation.placements, optimization)
    own = {name_of(obj) for obj in placing if not selects_no_cluster(obj)}
    left = {
        name
        for name in elsewhere
        if Subject(WORKLOAD, name) not in meant.fields
        and own.isdisjoint(placements_of(facts.workloads[name]))
    }
    return frozenset(left if left != facts.workloads.keys() else ())


def _targets(
    facts: FleetFacts, meant: NamesMeant, what_if: WhatIf, left_out: Collection[str]
) -> dict[str, Any]:
    """Return the fields that say which workloads are planned, and how those that don't exist."""
    run, fields = [item.name for item in what_if.run], meant.fields
    constrained = [item.name for item in fields if item.kind == WORKLOAD]
    every = (name for name in facts.workloads if name not in left_out)
    named = [*meant.workloads, *constrained, *run] if run else meant.workloads or every
    body: dict[str, Any] = {
        "targetWorkloads": [
            _with_fields({"name": name}, WORKLOAD, fields) for name in dict.fromkeys(named)
        ]
    }
    if run:
        body |= {"explain": True, "prune": False}
    if not all(item.like for item in what_if.run):
        body["missingScore"] = 1
    return body


def _with_fields(part: dict[str, Any], kind: str, fields: Statements) -> dict[str, Any]:
    return {**part, **fields.get(Subject(kind, part["name"]), {})}
