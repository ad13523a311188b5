"""The named limits that can keep a workload out, each with the fleet in which it does not hold.

Relaxing one never takes a possibility away, so conflicts among them can be searched by halving.
What no change can give (a workload runs once per cluster) is not among them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from dsf.kube.selectors import valid_selector
from optimizer.domain.fleet import CandidatePolicy, Cluster, Fleet, Supply, Workload
from optimizer.domain.quantity import spelt
from optimizer.model.problem import NO_DEVICE

FleetChange = Callable[[Fleet], Fleet]


@dataclass(frozen=True, slots=True, eq=False)
class RelaxableLimit:
    """A limit by name; `subject` is what it speaks of.

    `keeps`: the workload that it keeps running, which is not required where it is relaxed.
    `offered`: somebody could change it.
    """

    rule: str
    subject: tuple[str, ...]
    says: str
    relax: FleetChange
    keeps_running: str = ""
    changeable: bool = True


@dataclass(frozen=True, slots=True)
class RequiredReplicas:
    """A workload to be placed, and on how many clusters each workload runs then, itself included.

    Workloads that are not in `counts` may run or not.
    """

    workload: str
    counts: Mapping[str, int]


def relaxable_limits(fleet: Fleet, wanted: RequiredReplicas) -> tuple[RelaxableLimit, ...]:
    """Return every named limit for one more place of a workload, its own wishes first."""
    target = next(item for item in fleet.workloads if item.name == wanted.workload)
    return (
        *_wishes(target),
        *_apart(fleet, target),
        *_limits(fleet),
        *_supplies(fleet),
        *_policies(fleet),
        *_scores(fleet, target),
        *_others(wanted),
    )


def relaxed(fleet: Fleet, without: Iterable[RelaxableLimit]) -> Fleet:
    """Return the fleet in which some limits do not hold."""
    for barrier in without:
        fleet = barrier.relax(fleet)
    return fleet


def with_workload(fleet: Fleet, name: str, **changed: Any) -> Fleet:
    """Return a fleet in which a workload differs in some fields."""
    return replace(
        fleet,
        workloads=tuple(
            replace(item, **changed) if item.name == name else item for item in fleet.workloads
        ),
    )


def with_supply(fleet: Fleet, cluster: str, added: Supply) -> Fleet:
    """Return a fleet in which a cluster has more without any policy."""
    return with_cluster(fleet, cluster, lambda item: replace(item, base=(*item.base, added)))


def with_cluster(fleet: Fleet, name: str, change: Callable[[Cluster], Cluster]) -> Fleet:
    """Return a fleet in which a cluster differs."""
    clusters = (change(item) if item.name == name else item for item in fleet.clusters)
    return replace(fleet, clusters=tuple(clusters))


def enough(fleet: Fleet, kind: str) -> float:
    """Return as much of a kind as all workloads together can use; 1 where they ask for nothing.

    What asks for nothing runs on a device all the same, which has to be there.
    """
    used = (item.replicas * amount for item in fleet.workloads for amount in asked(item, kind))
    return sum(used) or 1.0


def asked(workload: Workload, kind: str) -> Iterator[float]:
    """Yield the amounts of a kind that a workload asks for."""
    if workload.kind == kind:
        yield workload.amount
    yield from (amount for extra, amount in workload.extras if extra == kind)


def _wishes(target: Workload) -> Iterator[RelaxableLimit]:
    name = target.name
    wishes: tuple[tuple[str, object, object, str], ...] = (
        ("pinned", target.clusters, (), f"runs on {', '.join(target.clusters)} alone"),
        ("excluded", target.excluded, (), f"does not run on {', '.join(target.excluded)}"),
        ("affinity", target.affinity, "", f"wants clusters with {target.affinity}"),
        ("anti-affinity", target.anti_affinity, "", f"wants none with {target.anti_affinity}"),
        ("minimum", target.minimum, None, f"accepts no value below {target.minimum}"),
        ("spread", target.spread, (), f"spreads: {_spreads(target)}"),
        ("near", target.near, (), f"runs near {' and '.join(target.near)}"),
        ("apart", target.apart, (), f"runs apart from {' and '.join(target.apart)}"),
    )
    fields = {"pinned": "clusters", "anti-affinity": "anti_affinity"}
    for rule, value, nothing, says in wishes:
        if value not in ((), "", None):
            field = fields.get(rule, rule)
            relax = partial(_without_wish, name, field, nothing)
            yield RelaxableLimit(rule, (name,), f"workload {name} {says}", relax)


def _without_wish(name: str, field: str, nothing: object, fleet: Fleet) -> Fleet:
    return with_workload(fleet, name, **{field: nothing})


def _spreads(target: Workload) -> str:
    return ", ".join(
        f"at most {item.most} {f'of group {item.group} ' if item.group else ''}per {item.key}"
        for item in target.spread
    )


def _apart(fleet: Fleet, target: Workload) -> Iterator[RelaxableLimit]:
    for item in fleet.workloads:
        if item.name != target.name and any(
            valid_selector(text).matches(target.labels) for text in item.apart
        ):
            says = f"workload {item.name} runs apart from {' and '.join(item.apart)}"
            relax = partial(with_workload, name=item.name, apart=())
            yield RelaxableLimit("apart", (item.name,), says, relax)


def _limits(fleet: Fleet) -> Iterator[RelaxableLimit]:
    for limit in fleet.limits:
        per = f" per {limit.per}" if limit.per else ""
        says = f"{limit.name} is at most {spelt(limit.most)}{per}"
        yield RelaxableLimit("limits", (limit.name,), says, partial(_without_limit, limit.name))


def _without_limit(name: str, fleet: Fleet) -> Fleet:
    return replace(fleet, limits=tuple(item for item in fleet.limits if item.name != name))


def _supplies(fleet: Fleet) -> Iterator[RelaxableLimit]:
    kinds = {item.kind for item in fleet.workloads}
    extras = {kind for item in fleet.workloads for kind, _ in item.extras}
    for cluster in fleet.clusters:
        slots = {(supply.kind, supply.device): 0.0 for supply in _supplied(cluster)}
        slots |= {(kind, NO_DEVICE): 0.0 for kind in extras}
        slots |= {
            (kind, NO_DEVICE): 0.0
            for kind in kinds
            if all(kind != supplied for supplied, _ in slots)
        }
        for kind, device in sorted(slots):
            if kind in kinds | extras:
                yield _supply(fleet, cluster, kind, device)


def _supply(fleet: Fleet, cluster: Cluster, kind: str, device: str) -> RelaxableLimit:
    most = max((s.amount for s in _supplied(cluster) if s[:2] == (kind, device)), default=0.0)
    what = f"{kind} {device}".strip()
    says = f"cluster {cluster.name} supplies at most {spelt(most)} {what}"
    more = Supply(kind, device, enough(fleet, kind))
    relax = partial(with_supply, cluster=cluster.name, added=more)
    return RelaxableLimit("capacity", (cluster.name, kind, device), says, relax)


def _supplied(cluster: Cluster) -> Iterator[Supply]:
    """Yield what a cluster has without a policy, and what each policy adds to that."""
    held: dict[tuple[str, str], float] = {}
    for supply in cluster.base:
        held[supply[:2]] = held.get(supply[:2], 0.0) + supply.amount
    yield from (Supply(*slot, amount) for slot, amount in held.items())
    for candidate in cluster.candidates:
        for supply in candidate.supplies:
            yield supply._replace(amount=supply.amount + held.get(supply[:2], 0.0))


def _policies(fleet: Fleet) -> Iterator[RelaxableLimit]:
    for cluster in fleet.clusters:
        for pool in dict.fromkeys(item.pool for item in cluster.candidates):
            if sum(item.pool == pool for item in cluster.candidates) > 1:
                where = f"pool {pool} of cluster" if pool else "cluster"
                says = f"{where} {cluster.name} enforces one policy"
                change = partial(_each_its_own_pool, pool)
                relax = partial(with_cluster, name=cluster.name, change=change)
                subject = cluster.name, pool
                yield RelaxableLimit("one_policy_per_pool", subject, says, relax, changeable=False)


def _each_its_own_pool(pool: str, cluster: Cluster) -> Cluster:
    def apart(item: CandidatePolicy) -> CandidatePolicy:
        return replace(item, pool=f"{pool}/{item.policy}") if item.pool == pool else item

    return replace(cluster, candidates=tuple(map(apart, cluster.candidates)))


def _scores(fleet: Fleet, target: Workload) -> Iterator[RelaxableLimit]:
    if any(missing_scores(fleet, target)):
        says = f"app {target.app} runs only on devices for which it has a usable score"
        relax = partial(_scored, target.app, target.kind)
        yield RelaxableLimit("unscored", (target.app,), says, relax)


def missing_scores(fleet: Fleet, target: Workload) -> Iterator[tuple[str, tuple[str, str, str]]]:
    """Yield the scores, by name and key, that places of a workload's kind lack."""
    for cluster in fleet.clusters:
        kinds = [(supply.kind, supply.device) for supply in _supplied(cluster)]
        devices = {device for kind, device in kinds if kind == target.kind} or {NO_DEVICE}
        for device in sorted(devices):
            key = cluster.name, target.app, device
            yield from ((name, key) for name, held in fleet.scores.items() if key not in held)


def _scored(app: str, kind: str, fleet: Fleet) -> Fleet:
    """Return the fleet in which missing scores of an app are 0."""
    target = next(item for item in fleet.workloads if (item.app, item.kind) == (app, kind))
    return with_scores(fleet, missing_scores(fleet, target))


def with_scores(fleet: Fleet, missing: Iterable[tuple[str, tuple[str, str, str]]]) -> Fleet:
    """Return a fleet in which scores, by name and key, are 0."""
    added: dict[str, dict[tuple[str, str, str], float]] = {name: {} for name in fleet.scores}
    for name, key in missing:
        added[name][key] = 0.0
    scores = {name: held.with_values(added[name]) for name, held in fleet.scores.items()}
    return replace(fleet, scores=scores)


def _others(wanted: RequiredReplicas) -> Iterator[RelaxableLimit]:
    for name, count in wanted.counts.items():
        if name != wanted.workload and count:
            where = "keeps running" if count == 1 else f"keeps running on {count} clusters"
            says = f"workload {name} {where}"
            yield RelaxableLimit("runs", (name,), says, lambda fleet: fleet, keeps_running=name)
