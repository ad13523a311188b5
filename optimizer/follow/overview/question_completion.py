"""Completes a request that names little: scores in words, everything that carries the labels."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from dsf.api.names import APP, score_object_name
from dsf.api.untrusted_text import UntrustedName, listed
from dsf.kube.port import Object
from optimizer.domain.fleet import CandidatePolicy
from optimizer.domain.issue import Issue
from optimizer.domain.mig.geometry import Geometry, geometry
from optimizer.domain.nodes import GPU_KIND
from optimizer.follow.overview.constraints.contradictions import contradiction
from optimizer.follow.overview.constraints.statements import (
    CLUSTER,
    WORKLOAD,
    Statements,
    Subject,
    changed,
    in_full,
    readable,
    searches,
    stated,
    unusable,
    with_constraints,
)
from optimizer.follow.overview.fleet_facts import FleetFacts
from optimizer.follow.overview.name_search import Search, find_name, found_names
from optimizer.follow.overview.plan_request import PartialRequest, with_namespace
from optimizer.follow.overview.what_if import (
    AddedCluster,
    AddedWorkload,
    PretendedObjects,
    WhatIf,
    policy_of_copy,
)
from optimizer.follow.record.plan_history import ObjectiveInForce, RequestInForce
from optimizer.plan.generated_objects import selects_no_cluster
from optimizer.snapshot.added_gpus import (
    TABLED,
    VENDOR,
    GpusOfModel,
    products_on,
    requested_fields,
    why_no_room,
)
from optimizer.snapshot.object_readers import (
    generated_by,
    labels_of,
    name_of,
    placements_of,
    read_policy,
)
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
    meant = settled if isinstance(settled, RequestProblem) else _names_meant(facts, partial)
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


class _NamesMeant(NamedTuple):
    """The names of a partial request in full; empty clusters and workloads: none were said.

    `fields`: those by which the request keeps to its constraints.
    """

    weights: tuple[tuple[str, float], ...]
    budget: tuple[tuple[str, float], ...]
    clusters: tuple[str, ...]
    workloads: tuple[str, ...]
    what_if: WhatIf
    fields: Statements


def _names_meant(facts: FleetFacts, partial: PartialRequest) -> _NamesMeant | RequestProblem:
    what_if, added = partial.what_if, [item.name for item in partial.what_if.add]
    existing, every = facts.hub.clusters, [*facts.hub.clusters, *added]
    run, likes = [item.name for item in what_if.run], [item.like for item in what_if.run]
    of_clusters = [item.cluster for item in what_if.scores]
    of_policies = [name for item in what_if.policies for name in item.clusters]
    names = found_names(
        (
            Search("objective", "score", partial.objective, facts.scores),
            Search("what_if.budget", "score", what_if.budget, facts.scores),
            Search("clusters", "managed cluster", partial.clusters, existing),
            Search("workloads", "workload", partial.workloads, facts.workloads),
            Search("what_if.lose", "managed cluster", what_if.lose, existing),
            Search(
                "what_if.add", "managed cluster", [i.like for i in what_if.add if i.like], existing
            ),
            Search("what_if.run", "workload", filter(None, likes), facts.workloads),
            Search("what_if.policies", "managed cluster", of_policies, every),
            *searches(what_if, "what_if.", [*facts.workloads, *run], every),
            Search("what_if.scores", "managed cluster", of_clusters, every),
            Search("what_if.scores", "score", [i.score for i in what_if.scores], facts.scores),
        )
    )
    if isinstance(names, RequestProblem):
        return names
    scores, clusters, workloads = (names[i] for i in ("score", "managed cluster", "workload"))
    copies = _added(facts, what_if.add, clusters)
    if isinstance(copies, RequestProblem):
        return copies
    constraints = in_full(what_if, names)
    problems = [
        FieldProblem(
            f"what_if.{field}",
            f"{UntrustedName(name)}: another {what} has this name; give the new {what} its own"
            + (f", with like: {UntrustedName(name)} for its nodes" if field == "add" else ""),
        )
        for field, what, said, existing_names in (
            ("add", "cluster", added, existing),
            ("run", "workload", run, facts.workloads),
            ("policies", "policy", [item.name for item in what_if.policies], facts.policies),
        )
        for at, name in enumerate(said)
        if name in existing_names or name in said[:at]
    ]
    problems += _scores_of_others(what_if.run, facts.workloads)
    lost = {clusters[name] for name in what_if.lose}
    asked_of = {clusters[name] for name in partial.clusters} or existing.keys()
    if lost and not added and lost.issuperset(asked_of):
        message = "no cluster would be left to plan for; lose fewer, or add one"
        problems.append(FieldProblem("what_if.lose", message))
    problems += unusable(what_if, names, facts.observation.observed_at, "what_if.", only_now=True)
    if problems:
        return invalid_request(tuple(problems))
    full = WhatIf(
        **constraints,
        lose=tuple(clusters[name] for name in what_if.lose),
        add=copies,
        run=tuple(
            i.model_copy(update={"like": workloads[i.like]}) if i.like else i for i in what_if.run
        ),
        policies=tuple(
            i.model_copy(update={"clusters": tuple(clusters[name] for name in i.clusters)})
            for i in what_if.policies
        ),
        scores=tuple(
            i.model_copy(update={"score": scores[i.score], "cluster": clusters[i.cluster]})
            for i in what_if.scores
        ),
        budget=what_if.budget,
    )
    fields = _stated_fields(facts, full)
    if isinstance(fields, RequestProblem):
        return fields
    return _NamesMeant(
        weights=tuple((scores[name], weight) for name, weight in partial.objective.items()),
        budget=tuple((scores[name], most) for name, most in what_if.budget.items()),
        clusters=tuple(dict.fromkeys(clusters[name] for name in partial.clusters)),
        workloads=tuple(dict.fromkeys(workloads[name] for name in partial.workloads)),
        what_if=full,
        fields=fields,
    )


def _scores_of_others(
    run: Iterable[AddedWorkload], workloads: Mapping[str, Object]
) -> Iterator[FieldProblem]:
    """Yield the names of new workloads by which scores of other ones would count for them."""
    apps = {labels_of(obj).get(APP, ""): name for name, obj in workloads.items()}
    for item in run:
        if not item.like and item.name in apps and item.name not in workloads:
            name, other = UntrustedName(item.name), UntrustedName(apps[item.name])
            why = f"{name} is the app of {other}, whose scores would count: name it another way"
            yield FieldProblem("what_if.run", f"{why}, or say that it is like {other}")


def _added(
    facts: FleetFacts, said: Collection[AddedCluster], clusters: Mapping[str, str]
) -> tuple[AddedCluster, ...] | RequestProblem:
    """Return the added clusters with the names of their GPU models, and like which ones they are.

    `clusters`: the names in full of those that were said.
    """
    wanted = any(item.gpus for item in said)
    existing = facts.hub.clusters if wanted else {}
    products = {name: products_on(existing[name], facts.inventories.get(name)) for name in existing}
    of_fleet, found = set[str]().union(*products.values()), list[AddedCluster]()
    for item in said:
        gpus = list[GpusOfModel]()
        for each in item.gpus:
            product = _product(each.product, of_fleet)
            if isinstance(product, RequestProblem):
                return product
            gpus.append(each.model_copy(update={"product": product}))
        having = (name for name in sorted(products) if gpus[0].product in products[name])
        like = clusters[item.like] if item.like else next(having, "")
        why = why_no_room(facts.inventories.get(like)) if gpus else ""
        if not like:
            why = f"no cluster has {gpus[0].product}, so say like which one it is: its scores count"
        elif why:
            why = f"{UntrustedName(like)} {why}; say like which other cluster it is"
        if why:
            return invalid_request((FieldProblem("what_if.add", why),))
        found.append(item.model_copy(update={"like": like, "gpus": tuple(gpus)}))
    return tuple(found)


def _product(wanted: str, of_fleet: Collection[str]) -> str | RequestProblem:
    """Return the GPU model that is meant: of the fleet, or else of those that are known.

    A name that stands for models which MIG divides alike, such as A100-40GB, means any of them.
    """
    spelt, alike = wanted.upper().removeprefix(VENDOR), geometry(wanted)
    for names in (of_fleet, TABLED.union(of_fleet)):
        exact = [name for name in names if name.upper().removeprefix(VENDOR) == spelt]
        if isinstance(alike, Geometry) and alike.model.upper() == spelt:
            exact += [name for name in sorted(names) if geometry(name) == alike]
        found = find_name(next(iter(exact), wanted), names, field="what_if.add", what="GPU model")
        if isinstance(found, str):
            return found
    return found


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
    facts: FleetFacts, optimization: str, meant: "_NamesMeant", elsewhere: Collection[str]
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
    facts: FleetFacts, meant: "_NamesMeant", what_if: WhatIf, left_out: Collection[str]
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


def _stated_fields(facts: FleetFacts, what_if: WhatIf) -> Statements | RequestProblem:
    """Return the fields by which a request keeps to constraints, and to those that are remembered.

    A problem if the question contradicts itself: what it leaves of the rest is what it asks for.
    """
    asked = with_constraints({}, what_if)
    if not asked:
        return {}
    clusters = {*facts.hub.clusters, *(item.name for item in what_if.add)} - set(what_if.lose)
    now = facts.observation.observed_at
    if problem := contradiction({}, asked, clusters, now):
        return problem
    before = dict(readable(stated(facts)))
    for item in what_if.run:
        like = before.get(Subject(WORKLOAD, item.like), {})
        before[Subject(WORKLOAD, item.name)] = like
    return changed(before, with_constraints(before, what_if))


def _with_fields(part: dict[str, Any], kind: str, fields: Statements) -> dict[str, Any]:
    return {**part, **fields.get(Subject(kind, part["name"]), {})}
