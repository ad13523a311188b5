"""What the names of a question mean in full, on the fleet and among what the question adds."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from dsf.api.names import APP
from dsf.api.untrusted_text import UntrustedName
from dsf.kube.port import Object
from optimizer.domain.mig.geometry import Geometry, geometry
from optimizer.follow.overview.constraints.contradictions import contradiction
from optimizer.follow.overview.constraints.statements import (
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
from optimizer.follow.overview.plan_request import PartialRequest
from optimizer.follow.overview.what_if import AddedCluster, AddedWorkload, WhatIf
from optimizer.snapshot.added_gpus import TABLED, VENDOR, GpusOfModel, products_on, why_no_room
from optimizer.snapshot.object_readers import labels_of
from optimizer.wire.request_problem import FieldProblem, RequestProblem, invalid_request


class NamesMeant(NamedTuple):
    """The names of a partial request in full; empty clusters and workloads: none were said.

    `fields`: those by which the request keeps to its constraints.
    """

    weights: tuple[tuple[str, float], ...]
    budget: tuple[tuple[str, float], ...]
    clusters: tuple[str, ...]
    workloads: tuple[str, ...]
    what_if: WhatIf
    fields: Statements


def names_meant(facts: FleetFacts, partial: PartialRequest) -> NamesMeant | RequestProblem:
    """Return what a question names in full; a problem if a name is unknown, ambiguous or taken."""
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
    return NamesMeant(
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
