"""What is broken on the way from a scorer to a workload that has landed, and what to do next."""

from collections.abc import Container, Iterable, Iterator

from optimizer.follow.overview.findings.cluster_findings import (
    of_annotations,
    of_clusters,
    of_drains,
    of_inventories,
)
from optimizer.follow.overview.findings.finding import SEVERITIES, FleetFinding, Found, by_cause
from optimizer.follow.overview.findings.scorer_findings import of_scorers, of_scores
from optimizer.follow.overview.findings.workload_findings import of_namespace, of_status, shortfall
from optimizer.follow.overview.fleet_facts import FleetFacts
from optimizer.wire.object_specs import ClusterSpec, WorkloadSpec


def findings(facts: FleetFacts) -> tuple[FleetFinding, ...]:
    """Return what is wrong, one finding for each cause: errors first, what is at work last.

    Of equal severity they have the order of the way: scorers first, the plan in force last.
    """
    return tuple(sorted(by_cause(_all(facts)), key=lambda item: SEVERITIES.index(item.severity)))


def findings_of(facts: FleetFacts, names: Container[str]) -> tuple[FleetFinding, ...]:
    """Return the findings about objects of these names, as if there were no others."""
    return tuple(by_cause(found for found in _all(facts) if found[0].name in names))


def findings_about(found: Iterable[FleetFinding], names: Iterable[str]) -> tuple[FleetFinding, ...]:
    """Return the findings that are about one of these objects."""
    wanted = frozenset(names)
    return tuple(item for item in found if not wanted.isdisjoint(item.names))


def _all(facts: FleetFacts) -> Iterator[Found]:
    yield from of_scorers(facts.scorers, facts.faults, facts.scores)
    yield from of_scores(facts)
    yield from of_clusters(facts.faults)
    yield from of_drains(facts.drained)
    yield from of_annotations("cluster", facts.hub.clusters, ClusterSpec)
    yield from of_inventories(facts)
    yield from of_namespace(facts)
    yield from of_annotations("workload", facts.workloads, WorkloadSpec)
    yield from filter(None, (shortfall(facts, name) for name in facts.workloads))
    yield from of_status(facts.status, facts.faults)
