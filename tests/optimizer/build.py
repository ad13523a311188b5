"""Builders of Kubernetes objects, fleets and requests for the optimizer's tests."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from dsf.kube import kinds
from dsf.kube.kinds import Kind
from dsf.kube.port import Object
from optimizer.candidates.fleet_candidates import with_candidates
from optimizer.domain.fleet import (
    CandidatePolicy,
    Cluster,
    Fleet,
    Objective,
    Selector,
    Supply,
    Workload,
)
from optimizer.domain.score_matrix import ScoreMatrix
from optimizer.domain.settings import DEFAULTS, OptimizerSettings
from optimizer.snapshot.fleet_reader import FleetReader
from optimizer.snapshot.fleet_snapshot import read_objects
from optimizer.snapshot.observation import Observation
from optimizer.snapshot.requested_gpus import mig_rules
from optimizer.wire.request import OptimizeRequest

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
SETTINGS = ("2g.24gb", 3), ("3g.48gb", 2), ("all", 1)
PERFORMANCE = {
    ("app01", "all"): 80,
    ("app02", "all"): 80,
    ("app01", "3g.48gb"): 60,
    ("app02", "3g.48gb"): 55,
    ("app01", "2g.24gb"): 10,
    ("app02", "2g.24gb"): 15,
}
POWER = {
    ("app01", "all"): 20,
    ("app02", "all"): 10,
    ("app01", "3g.48gb"): 30,
    ("app02", "3g.48gb"): 55,
    ("app01", "2g.24gb"): 80,
    ("app02", "2g.24gb"): 90,
}


def obj(kind: Kind, name: str, namespace: str | None = None, **fields: Any) -> Object:
    metadata = {"name": name, "labels": fields.pop("labels", {})}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **fields}


def managed_cluster(name: str, /, **labels: str) -> Object:
    labels = {key.replace("_", "-"): value for key, value in labels.items()}
    return obj(kinds.MANAGED_CLUSTER, name, labels=labels, spec={"hubAcceptsClient": True})


def policy(name: str, device: str = "all", amount: object = 1, kind: str = "gpu") -> Object:
    labels = {
        "resource-supply-kind": kind,
        "resource-supply-amount": str(amount),
        "resource-supply-device": device,
    }
    spec = {"disabled": False, "policy-templates": []}
    return obj(kinds.POLICY, name, "default", labels=labels, spec=spec)


def workload(name: str, app: str, amount: object = 2, placement: str | None = None) -> Object:
    labels = {"app": app, "resource-request-kind": "gpu", "resource-request-amount": str(amount)}
    reference = {"name": placement or f"{app}-placement", "rolloutStrategy": {"type": "All"}}
    spec = {"placementRefs": [reference], "manifestWorkTemplate": {"workload": {"manifests": []}}}
    return obj(kinds.MANIFEST_WORK_REPLICA_SET, name, "default", labels=labels, spec=spec)


def score(
    cluster: str,
    name: str,
    entries: Mapping[str, Any] | Iterable[tuple[str, Any]],
    valid_until: str | None = None,
) -> Object:
    pairs = entries.items() if isinstance(entries, Mapping) else entries
    status: Object = {"scores": [{"name": key, "value": value} for key, value in pairs]}
    if valid_until is not None:
        status["validUntil"] = valid_until
    return obj(kinds.ADD_ON_PLACEMENT_SCORE, name, cluster, status=status)


def named(scores: Mapping[tuple[str, str], int]) -> dict[str, int]:
    return {f"{app};{device}": value for (app, device), value in scores.items()}


def guide(clusters: Iterable[str] = ("worker01", "worker02")) -> Observation:
    """The development guide's fleet, scores included."""
    clusters = tuple(clusters)
    return Observation(
        managed_clusters=tuple(managed_cluster(name, cluster_name=name) for name in clusters),
        policies=tuple(
            policy(f"{device}-{name}", device, amount)
            for name in clusters
            for device, amount in SETTINGS
        ),
        workloads=(workload("mwrs-app01", "app01"), workload("mwrs-app02", "app02")),
        scores=tuple(
            score(name, score_name, named(table))
            for name in clusters
            for score_name, table in (("performance", PERFORMANCE), ("power", POWER))
        ),
    )


def body(
    score_name: str = "performance",
    clusters: Iterable[str] = ("worker01", "worker02"),
    workloads: Iterable[str] = ("mwrs-app01", "mwrs-app02"),
) -> dict[str, Any]:
    """The guide's request as JSON."""
    return {
        "namespace": "default",
        "clusters": [
            {
                "name": name,
                "availablePolicies": [{"name": f"{device}-{name}"} for device, _ in SETTINGS],
            }
            for name in clusters
        ],
        "targetWorkloads": [{"name": name} for name in workloads],
        "preference": {
            "addonPlacementScore": score_name,
            "scoreDimensionFormat": "${app};${device}",
        },
    }


def request(*args: Any, **changed: Any) -> OptimizeRequest:
    return OptimizeRequest.model_validate({**body(*args), **changed})


def read_fleet(
    observation: Observation,
    asked: OptimizeRequest | None = None,
    settings: OptimizerSettings = DEFAULTS,
) -> Fleet:
    """The fleet of a request, with its scores and with generated candidates."""
    asked = asked or request()
    reader = FleetReader(
        read_objects(observation, asked, settings), asked, settings=settings, now=NOW
    )
    reader.add(observation.scores)
    found = reader.snapshot()
    return with_candidates(found.fleet, found.pools, mig_rules(asked), found.enforced)


def fleet(
    supplies: Mapping[str, Iterable[tuple[str, int]]],
    demands: Mapping[str, int],
    scores: Mapping[tuple[str, str, str], float],
) -> Fleet:
    """A fleet of one kind: devices and amounts by cluster, amounts by workload, which is its app.

    A policy is named after its device.
    """
    clusters = tuple(
        Cluster(
            name,
            Selector(name),
            tuple(CandidatePolicy(device, (Supply("gpu", device, n),)) for device, n in options),
        )
        for name, options in supplies.items()
    )
    workloads = tuple(
        Workload(name, name, "gpu", amount, f"{name}-placement") for name, amount in demands.items()
    )
    by_name = {"score": ScoreMatrix.of(scores)}
    return Fleet("default", clusters, workloads, by_name, (Objective("score"),))
