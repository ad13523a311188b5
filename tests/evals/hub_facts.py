"""What is true of a fleet, read from the objects of its hub: what answers are judged by.

It reads labels, statuses and managedFields itself, and shares no code with what it judges. A fact
of a conversation names one of these in braces, such as `{stalest.cluster}`.
"""

import base64
import gzip
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import product
from typing import Any

from dsf.kube.kinds import (
    ADD_ON_PLACEMENT_SCORE,
    DYNAMIC_SCORER,
    MANAGED_CLUSTER,
    NODE_INVENTORY,
    PLACEMENT,
    PLACEMENT_PLAN,
    POLICY,
)
from dsf.kube.kinds import MANIFEST_WORK_REPLICA_SET as WORKLOAD
from dsf.kube.port import Kube
from tests.evals.recorded_past import RecordedPast

PREFIX = "dynamic-scoring.open-cluster-management.io/"
GPU = "nvidia.com/gpu"
MINUTE = 60


class HubFacts(dict[str, str]):
    """The facts of a hub by name."""

    def filled(self, text: str) -> str:
        """Return a text with the facts that it names in braces."""
        for name, value in self.items():
            text = text.replace(f"{{{name}}}", value)
        assert "{" not in text, text
        return text


async def hub_facts(hub: Kube, past: RecordedPast | None = None) -> HubFacts:
    """Read the hub now, and what its agents published."""
    scores = (await hub.list(ADD_ON_PLACEMENT_SCORE)).items
    scorers = (await hub.list(DYNAMIC_SCORER)).items
    inventories = (await hub.list(NODE_INVENTORY)).items
    clusters = (await hub.list(MANAGED_CLUSTER)).items
    ready = sum(_available(item) for item in clusters)
    found = {"clusters.all": f"{len(clusters)}", "clusters.ready": f"{ready}"}
    for item in scorers:
        failing = item["status"].get("failingClusters") or ()
        found[f"failing.{item['metadata']['name']}"] = ", ".join(one["name"] for one in failing)
    records = (await hub.list(PLACEMENT_PLAN)).items
    placements = (await hub.list(PLACEMENT)).items
    return HubFacts(
        {
            **found,
            **_ages(scores),
            **_gpus(inventories, scores),
            **_supplied((await hub.list(POLICY)).items),
            **_plans(records, placements),
            **(await _past(hub, records[-1], past) if past else {}),
        }
    )


async def _past(hub: Kube, record: Any, past: RecordedPast) -> dict[str, str]:
    """Return what the plan in force was worth, and what the best ones would have been.

    Best of an hour: every combination of a policy for each cluster, and of places for workloads.
    """
    content = _content(record)
    namespace = record["metadata"]["namespace"]
    policies = {
        item["metadata"]["name"]: item for item in (await hub.list(POLICY, namespace)).items
    }
    workloads = {
        item["metadata"]["name"]: item for item in (await hub.list(WORKLOAD, namespace)).items
    }
    clusters = {
        item["name"]: [_labels(policies[one["name"]]) for one in item["availablePolicies"]]
        for item in content["request"]["clusters"]
    }
    apps = {name: _labels(item) for name, item in workloads.items()}
    best = found = 0.0
    for hour in range(past.hours):

        def value(name: str, cluster: str, device: str, at: int = hour) -> float:
            return past.score(cluster, apps[name]["app"], device, at)

        found += sum(value(*place) for place in content["assignments"])
        best += max(
            _worth(dict(zip(clusters, chosen, strict=True)), apps, places, value)
            for chosen in product(*clusters.values())
            for places in product(("", *clusters), repeat=len(apps))
        )
    return {
        "past.hours": f"{past.hours} h",
        "past.recorded": f"{found / past.hours:.2f}",
        "past.best": f"{best / past.hours:.2f}",
        "past.regret": f"{100 * (best - found) / best:.2f}%",
    }


def _worth(
    chosen: Mapping[str, Mapping[str, str]],
    apps: Mapping[str, Mapping[str, str]],
    places: Sequence[str],
    value: Callable[[str, str, str], float],
) -> float:
    """Return the value of workloads at their places; below 0 if they do not fit."""
    total, left = 0.0, {name: int(of["resource-supply-amount"]) for name, of in chosen.items()}
    for (name, labels), cluster in zip(apps.items(), places, strict=True):
        if cluster:
            left[cluster] -= int(labels["resource-request-amount"])
            total += value(name, cluster, chosen[cluster]["resource-supply-device"])
    return total if min(left.values()) >= 0 else -1.0


def _labels(obj: Any) -> dict[str, str]:
    labels: dict[str, str] = obj["metadata"]["labels"]
    return labels


def _plans(records: Any, placements: Any) -> dict[str, str]:
    """Return what the newest PlacementPlan says of itself, and its packed content and the last."""
    if len(records) < 2:
        return {}
    last, newest = sorted(records, key=lambda item: item["spec"]["revision"])[-2:]
    spec, uids = newest["spec"], {i["metadata"]["name"]: i["metadata"]["uid"] for i in placements}
    places = {
        f"{when}.{item[0]}": f"{item[2]} on {item[1]}"
        for when, record in (("before", last), ("after", newest))
        for item in _content(record)["assignments"]
    }
    return {
        "plan.revision": f"{spec['revision']}",
        "plan.by": spec.get("requestedBy", ""),
        "plan.digest": spec["digest"][:8],
        "plan.score": _content(newest)["request"]["preference"]["addonPlacementScore"],
        "plan.proof": "proven best" if spec.get("gap") == 0 else "not proven",
        "plan.worth": f"{spec['objective']:g}",
        "placement.uid": uids.get("app01-placement", ""),
        "plan.placement.uid": uids.get(_content(newest)["objects"][0]["metadata"]["name"], ""),
        **places,
    }


def _content(record: Any) -> Any:
    return json.loads(gzip.decompress(base64.b64decode(record["spec"]["content"])))


async def not_written(hub: Kube, wanted: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Return the objects whose annotations of ours are others; the wanted ones by kind and name."""
    lacking = list[str]()
    for where, texts in wanted.items():
        kind, _, path = where.partition(" ")
        namespace, _, name = path.rpartition("/")
        (known,) = (item for item in (MANAGED_CLUSTER, WORKLOAD) if item.kind == kind)
        obj = await hub.get(known, name, namespace or None)
        found = (obj["metadata"].get("annotations") or {}).items()
        ours = {key.removeprefix(PREFIX): text for key, text in found if key.startswith(PREFIX)}
        if ours != texts:
            lacking.append(f"{where} has {ours}")
    return lacking


def _available(cluster: Any) -> bool:
    conditions = cluster.get("status", {}).get("conditions") or ()
    kind = "ManagedClusterConditionAvailable"
    return not any(item["type"] == kind and item["status"] != "True" for item in conditions)


def _ages(scores: Any) -> dict[str, str]:
    written = sorted(
        (_status_time(item), item["metadata"]["namespace"], item["metadata"]["name"])
        for item in scores
        if item.get("status")
    )
    at, cluster, name = written[0]
    found = {"stalest.cluster": cluster, "stalest.score": name, "stalest.age": _age(at)}
    for at, cluster, name in written:
        found |= {f"newest.{cluster}.age": _age(at), f"newest.{cluster}.score": name}
    return found


def _status_time(obj: Any) -> datetime:
    times = [
        item["time"]
        for item in obj["metadata"]["managedFields"]
        if item.get("subresource") == "status"
    ]
    return datetime.fromisoformat(max(times))


def _age(at: datetime) -> str:
    """Return an age as people may write it."""
    minutes = int((datetime.now(UTC) - at).total_seconds() // MINUTE)
    hours = minutes // MINUTE
    if hours >= 2:
        return f"{hours}h | {hours} hours"
    return f"{minutes}m | {minutes} minutes | {minutes} min"


def _gpus(inventories: Any, scores: Any) -> dict[str, str]:
    rows = [row for item in inventories for row in _nodes(item)]
    if not rows:
        return {}
    free, where = max((each - taken, cluster) for cluster, _, each, taken in rows)
    idle = {
        item["metadata"]["namespace"]: item["status"]["scores"][0]["value"]
        for item in scores
        if item["metadata"]["name"] == "gpu-idle"
    }
    hours = {
        cluster: sum(count * taken for at, count, _, taken in rows if at == cluster)
        * 24
        * share
        / 100
        for cluster, share in idle.items()
    }
    return {
        "gpus.all": f"{sum(count * each for _, count, each, _ in rows)}",
        "gpus.free": f"{sum(count * (each - taken) for _, count, each, taken in rows)}",
        "gpus.on_one_node": f"{free}",
        "gpus.on_one_node.cluster": where,
        "idle.hours": f"{sum(hours.values()):g}",
        **{f"idle.{cluster}": f"{value:g}" for cluster, value in hours.items()},
    }


def _supplied(policies: Any) -> dict[str, str]:
    """Return the most whole GPUs that a policy supplies."""
    labels = map(_labels, policies)
    whole = [
        int(item["resource-supply-amount"])
        for item in labels
        if item["resource-supply-device"] == "all"
    ]
    return {"supplied.all": f"{max(whole, default=0)}"}


def _nodes(inventory: Any) -> Iterator[tuple[str, int, int, int]]:
    """Yield of equal nodes: their cluster, their number, the GPUs of each, and those taken."""
    for node in inventory["status"]["nodes"]:
        taken = (node.get("requested") or {}).get(GPU, "0")
        cluster, each = inventory["metadata"]["namespace"], node["allocatable"].get(GPU, "0")
        yield cluster, node.get("count", 1), int(each), int(taken)
