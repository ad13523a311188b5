"""The fields of the body of POST /optimize."""

import random
from base64 import b64encode
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any

from dsf.api.names import HUB_NAMESPACE
from dsf.kube import kinds
from dsf.kube.clock import utc_now
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.kinds import Kind
from optimizer.snapshot.observation import Observation
from tests.fields.door import Case, Fields, with_values
from tests.optimizer.build import SETTINGS, body, guide, score, workload
from tests.optimizer.hubs import hub_of
from tests.optimizer.inventoried_nodes import GH200, inventory, node, publish_nodes
from tests.optimizer.inventories import counted, publish
from tests.optimizer.operations.test_recorded_plans import client
from tests.optimizer.service.kept_fleet import declare_waiting
from tests.optimizer.snapshot.test_score_doubts import trusting

MANY = {
    "clusters": [f"c{index}" for index in range(5)],
    "apps": [f"w{index}" for index in range(12)],
}
PER_CALL = ("digest", "seconds", "record")
GENERATED = (kinds.PLACEMENT, kinds.PLACEMENT_BINDING, kinds.POLICY, kinds.PLACEMENT_PLAN)


OCM = "cluster.open-cluster-management.io"
SINCE = {"timeAdded": "2026-11-20T00:00:00Z"}
UNREACHABLE = {"key": f"{OCM}/unreachable", "effect": "NoSelect", **SINCE}
MIG = {"clusters": [{"name": "worker01", "gpus": [{"model": "H100-96GB"}]}]}
POWER: tuple[str, Fields] = ("/optimize", body("power"))
ROLLING = (POWER, ("/optimize", {**body(), "rollout": "Stepwise"}))
STATES: dict[str, tuple[tuple[str, Fields], ...]] = {
    "applied": (POWER,),
    "replaced": (("/optimize", body()), POWER),
    "rolling": ROLLING,
    "cancelled": (*ROLLING, ("/rollouts/default/default/cancel", {})),
    "divided": tuple(
        ("/optimize", with_values(body(score), MIG)) for score in ("performance", "power")
    ),
}
"""What was asked before, by state."""

AFTER: dict[str, tuple[Kind, str, str | None, Fields]] = {
    "gone": (kinds.MANAGED_CLUSTER, "worker01", None, {"spec": {"taints": [UNREACHABLE]}})
}
"""What happened to the hub since then."""


def base_body() -> Fields:
    """The guide's request; the first policy of a cluster is the one that is enforced."""
    found = body()
    for cluster in found["clusters"]:
        cluster["availablePolicies"].sort(key=lambda item: "3g" not in item["name"])
    return {**found, "dryRun": True}


def observation(on: str = "") -> Observation:
    """The guide's fleet in two zones of one site, or the one that a state needs."""
    found = many_clusters() if on == "many" else deepcopy(guide())
    for cluster, zone in zip(found.managed_clusters, "abcde", strict=False):
        cluster["metadata"]["labels"] |= {"zone": zone, "site": "here"}
    for word in on.split():
        found = CHANGED[word](found) if word in CHANGED else found
    return found


def tainted(taint: Fields, zones: str = "ab") -> Callable[[Observation], Observation]:
    """The fleet with a taint on the clusters of some zones."""

    def changed(found: Observation) -> Observation:
        for cluster in found.managed_clusters:
            if cluster["metadata"]["labels"]["zone"] in zones:
                cluster["spec"]["taints"] = [taint]
        return found

    return changed


def with_gpus(found: Observation) -> Observation:
    for cluster in found.managed_clusters:
        labels = {"nvidia.com/gpu.product": "NVIDIA-H20", "nvidia.com/gpu.count": "1"}
        cluster["metadata"]["labels"] |= labels
    return found


def uneven(found: Observation) -> Observation:
    for obj in found.scores:
        if obj["metadata"]["namespace"] == "worker02":
            obj["status"]["scores"] = [{**item, "value": 7} for item in obj["status"]["scores"]]
    return found


def unscored(found: Observation) -> Observation:
    for obj in found.scores:
        if obj["metadata"]["namespace"] == "worker02":
            others = (item for item in obj["status"]["scores"] if "app01" not in item["name"])
            obj["status"]["scores"] = [*others]
    return found


def expired(found: Observation) -> Observation:
    for obj in found.scores:
        obj["status"]["validUntil"] = "2020-01-01T00:00:00Z"
    return found


def doubtful(found: Observation) -> Observation:
    return replace(found, scores=tuple(trusting(obj, 5.0) for obj in found.scores))


CHANGED: dict[str, Callable[[Observation], Observation]] = {
    "tainted": tainted({"key": "gpu", "value": "a", "effect": "NoSelect", **SINCE}),
    "avoided": tainted({"key": "old", "effect": "PreferNoSelect"}, "a"),
    "lost": tainted(UNREACHABLE, "a"),
    "gpus": with_gpus,
    "uneven": uneven,
    "unscored": unscored,
    "expired": expired,
    "doubtful": doubtful,
}
"""What is different in a state: nothing runs without a toleration; worker01 is a last resort; OCM
does not reach worker01; clusters tell their GPUs; worker02 has low scores; it has none of app01;
all scores are too old; forecasts have little trust. `many`: the first solution is not the best."""


def many_clusters() -> Observation:
    """Five clusters and twelve workloads with drawn scores."""
    draw = random.Random(3)  # noqa: S311 - a seeded case, not a secret
    names = [f"{app};{device}" for app in MANY["apps"] for device, _ in SETTINGS]
    return replace(
        guide(MANY["clusters"]),
        workloads=tuple(workload(app, app, draw.choice([1, 2])) for app in MANY["apps"]),
        scores=tuple(
            score(cluster, "performance", {name: draw.randint(1, 100) for name in names})
            for cluster in MANY["clusters"]
        ),
    )


async def hub_in(on: str) -> EmbeddedHub:
    """A hub in a state.

    `applied`: the plan for the score power is in force; `replaced`: after one for performance.
    `rolling`: a stepwise rollout to performance has begun after it; `cancelled`: it was ended.
    `pending`: the scheduler finds no node for any Pod. `divided`: two plans that generate MIG
    policies. `waiting`: a plan waits for an approval. Then
    `gone`: worker01 was lost.
    `placeless`: no entry of the score performance tells app and device. `inventoried`: worker01
    has no GPUs, as its agent sees it, or advertises no device of its GPU.
    """
    hub = await hub_of(observation(on))
    await hub.create(kinds.SECRET, OTHER_KEY)
    if "inventoried" in on:
        gpu: Fields = {"labels": GH200, "names": ["gpu-node-1"]} if "gpus" in on else {}
        await publish_nodes(hub, inventory("worker01", [node({"cpu": 8}, **gpu)]))
    if "placeless" in on:
        await hub.create(kinds.DYNAMIC_SCORER, PLACELESS)
    async with client(hub) as http:
        before = [asked for word in on.split() for asked in STATES.get(word, ())]
        for path, asked in before:
            (await http.post(path, json=asked)).raise_for_status()
    for cluster in ("worker01", "worker02") if "pending" in on else ():
        pending = (counted(0, 0, 2, name=name) for name in WORKLOADS)
        await publish(hub, *pending, cluster=cluster, now=utc_now())
    if "waiting" in on:
        await declare_waiting(hub)
    for kind, name, namespace, patch in (AFTER[word] for word in on.split() if word in AFTER):
        await hub.patch(kind, name, patch, namespace)
    return hub


def seen(answer: Any) -> Any:
    """What an answer says apart from what differs from call to call, and from echoes."""
    if isinstance(answer, dict):
        return {key: seen(value) for key, value in answer.items() if key not in PER_CALL}
    return [seen(item) for item in answer] if isinstance(answer, list) else answer


async def on_hub(hub: EmbeddedHub) -> Any:
    """The generated objects, as far as they were written."""
    return [
        (obj["kind"], obj["metadata"]["name"], obj.get("spec"), obj.get("subjects"))
        for kind in GENERATED
        for obj in (await hub.list(kind, "default")).items
    ]


WORKLOADS = ("mwrs-app01", "mwrs-app02")
OTHER_KEY = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "other-key", "namespace": "default"},
    "data": {"key": b64encode(bytes(32)).decode()},
}
"""A key that signed no record."""
PLACELESS = {
    "metadata": {"name": "performance", "namespace": HUB_NAMESPACE},
    "spec": {
        "description": "d",
        "configURL": "http://scorer/config",
        "scoreDimensionFormat": "${meta}",
        "scoring": {"params": {"name": "performance"}},
    },
}
POWER_USE = {"limits": [{"name": "power", "maximum": 500, "uses": "power"}]}
SCORE_LIMIT = {"name": "heat", "maximum": 60, "score": {"addonPlacementScore": "performance"}}
USES = {
    "targetWorkloads": [{"name": f"mwrs-{app}", "uses": "power=300"} for app in ("app01", "app02")]
}
ONE_CLUSTER = {"clusters": base_body()["clusters"][:1]}
CPU = {
    "targetWorkloads[].requests": "cpu=4",
    "clusters[].allocatable": [{"kind": "cpu", "amount": 9}],
    "clusters[1].allocatable": [{"kind": "memory", "amount": 9}],
}
SUPPLIES = {
    **ONE_CLUSTER,
    "clusters[].availablePolicies": [
        {
            "name": "3g.48gb-worker01",
            "supplies": [{"kind": "gpu", "device": "3g.48gb", "amount": 2}],
        }
    ],
}
LAYOUTS = {
    "explain": True,
    "clusters[].availablePolicies": [
        {"name": "3g.48gb-worker01", "layouts": [{"gpu": 0, "layout": "2x3g.48gb"}]},
        {"name": "2g.24gb-worker01", "layouts": [{"gpu": 0, "layout": "3x2g.24gb"}]},
    ],
}
HELD = [{"profile": "2g.24gb", "start": start} for start in (0, 2, 4)]
ROOMY = {
    **ONE_CLUSTER,
    "clusters[].availablePolicies": [
        {
            "name": "3g.48gb-worker01",
            "supplies": [{"kind": "gpu", "device": "3g.48gb", "amount": 4}],
        }
    ],
}


def instances(*held: Fields, **mig: Any) -> Fields:
    """A GPU with these instances."""
    return {**MIG, "clusters[].gpus[].instances": [*held], **({"mig": mig} if mig else {})}


def of_site(first: Fields, second: Fields) -> Fields:
    """Both workloads, at most one of which may run on the site."""
    spread = {"spread": [{"key": "site", "most": 1}]}
    apps = {"mwrs-app01": first, "mwrs-app02": second}
    return {"targetWorkloads": [{"name": name, **spread, **own} for name, own in apps.items()]}


ALL_TOLERATED = [{"operator": "Exists"}]


def tolerations(path: str, other: Fields) -> dict[str, Case]:
    """The cases of a list of tolerations; `other`: what else tolerates the taint gpu=a."""
    own = {"key": "gpu", "operator": "Equal", "value": "a"}
    given = {**other, path: [own]}
    return {
        f"{path}[].key": Case("other", given, "tainted"),
        f"{path}[].operator": Case("Exists", {**other, path: [{"key": "gpu"}]}, "tainted"),
        f"{path}[].value": Case("b", given, "tainted"),
        f"{path}[].effect": Case("PreferNoSelect", given, "tainted"),
        f"{path}[].tolerationSeconds": Case(60, given, "tainted"),
    }


LIMIT_OF_SEVERAL = {
    **SCORE_LIMIT,
    "score": {**SCORE_LIMIT["score"], "scoreDimensionFormat": "${meta}"},
}


def score_cases(path: str, given: Fields) -> dict[str, Case]:
    """The cases of a preference."""
    return {
        f"{path}.addonPlacementScore": Case("nope", given),
        f"{path}.scoreDimensionFormat": Case("${device};${app}", given),
        f"{path}.aggregation": Case("Min", {**given, f"{path}.scoreDimensionFormat": "${meta}"}),
        f"{path}.at": Case("p90", {**given, f"{path}.scoreDimensionFormat": "${meta}"}),
        f"{path}.weight": Case(3, given),
        f"{path}.minimum": Case(10, {**given, f"{path}.maximum": 70}),
        f"{path}.maximum": Case(70, {**given, f"{path}.minimum": 10}),
        f"{path}.invert": Case(True, given),
        f"{path}.minimumTrust": Case(0.9, given, "doubtful"),
        f"{path}.untrusted": Case("Refuse", {**given, f"{path}.minimumTrust": 0.9}, "doubtful"),
    }


DRAIN = {"clusters[].drain.until": "2099-01-01T00:00:00Z"}
NIGHTLY = {"clusters[].drain.schedule": "0 11 * * *", "clusters[].drain.duration": "8h"}
CASES: dict[str, Case] = {
    "namespace": Case("other"),
    "optimization": Case("team-b"),
    "clusters[].allocatable[].kind": Case("memory", CPU),
    "clusters[].allocatable[].device": Case("x", CPU),
    "clusters[].allocatable[].amount": Case(1, CPU),
    "clusters[].capacitySource": Case("Stated", on="inventoried"),
    "clusters[].drain.start": Case("2099-01-01T00:00:00Z", DRAIN),
    "clusters[].drain.until": Case("2020-01-01T00:00:00Z", DRAIN),
    "clusters[].drain.schedule": Case("0 3 * * *", NIGHTLY),
    "clusters[].drain.duration": Case("1m", NIGHTLY),
    "clusters[].drain.timeZone": Case("Asia/Tokyo", NIGHTLY),
    "clusters[].maxWorkloads": Case(0),
    "clusters[].packing": Case(why_not="it speaks of nodes, and none of these are known"),
    "clusters[].name": Case("worker09"),
    "clusters[].availablePolicies[].pool": Case("other", ONE_CLUSTER),
    "clusters[].availablePolicies[].cluster": Case("worker02"),
    "clusters[].availablePolicies[].supplies[].kind": Case("fpga", SUPPLIES),
    "clusters[].availablePolicies[].supplies[].device": Case("2g.24gb", SUPPLIES),
    "clusters[].availablePolicies[].supplies[].amount": Case(1, SUPPLIES),
    "clusters[].availablePolicies[].layouts[].node": Case("gpu-node-1", LAYOUTS, "applied"),
    "clusters[].availablePolicies[].layouts[].gpu": Case(1, LAYOUTS, "applied"),
    "clusters[].availablePolicies[].layouts[].layout": Case("3x2g.24gb", LAYOUTS, "applied"),
    "clusters[].availablePolicies[].changeCost": Case(5),
    "clusters[].availablePolicies[].uses": Case({"power": 600}, POWER_USE),
    **tolerations(
        "clusters[].availablePolicies[].tolerations",
        {"targetWorkloads[].tolerations": ALL_TOLERATED},
    ),
    "clusters[].availablePolicies[].name": Case("nope"),
    "clusters[].gpus[].model": Case("A100-40GB", MIG),
    "clusters[].gpus[].count": Case(2, MIG),
    "clusters[].gpus[].node": Case("gpu-node-1", MIG),
    "clusters[].gpus[].pool": Case("b", MIG),
    "clusters[].gpus[].instances[].gpu": Case(3, instances({"profile": "2g.24gb"})),
    "clusters[].gpus[].instances[].profile": Case(
        "7g.96gb", instances({"profile": "1g.12gb", "busy": True}, reconfigure="instance")
    ),
    "clusters[].gpus[].instances[].start": Case(
        2, instances({"profile": "1g.12gb", "start": 7, "busy": True})
    ),
    "clusters[].gpus[].instances[].busy": Case(
        True, instances({"profile": "3g.48gb", "start": 0}, {"profile": "3g.48gb", "start": 4})
    ),
    "clusters[].gpus[].instances[].workload": Case(
        "mwrs-app09", instances({"profile": "3g.48gb"}, {"profile": "3g.48gb"})
    ),
    "targetWorkloads[].replicas": Case(2),
    "targetWorkloads[].priority": Case(3),
    "targetWorkloads[].requests": Case({"cpu": 4}),
    "targetWorkloads[].spread[].key": Case(
        "cluster-name",
        {"targetWorkloads[].replicas": 2, "targetWorkloads[].spread": [{"key": "none", "most": 1}]},
    ),
    "targetWorkloads[].spread[].most": Case(
        2,
        {"targetWorkloads[].replicas": 2, "targetWorkloads[].spread": [{"key": "kind", "most": 1}]},
    ),
    "targetWorkloads[].spreadGroup": Case("g", of_site({}, {"spreadGroup": "g"})),
    "targetWorkloads[].devices": Case(["2g.24gb"]),
    "targetWorkloads[].clusters": Case(["worker02"]),
    "targetWorkloads[].excludedClusters": Case(["worker01"]),
    "targetWorkloads[].affinity": Case("zone=b"),
    "targetWorkloads[].antiAffinity": Case("zone=a"),
    "targetWorkloads[].workloadAffinity": Case("app=app02"),
    "targetWorkloads[].workloadAntiAffinity": Case("app=app02", ROOMY),
    "targetWorkloads[].apartFrom": Case(["mwrs-app02"], ROOMY),
    "targetWorkloads[].togetherWith": Case(["mwrs-app02"]),
    "targetWorkloads[].minimumScore": Case(90),
    "targetWorkloads[].moveCost": Case(
        7,
        {
            "targetWorkloads": [{"name": "mwrs-app01"}],
            "clusters[].availablePolicies[].changeCost": 5,
        },
        "applied",
    ),
    "targetWorkloads[].uses": Case({"power": 600}, POWER_USE),
    **tolerations(
        "targetWorkloads[].tolerations",
        {"clusters[].availablePolicies[].tolerations": ALL_TOLERATED},
    ),
    "targetWorkloads[].name": Case("mwrs-app09"),
    **score_cases("preference", {}),
    **score_cases("objectives[]", {"objectives": [{"addonPlacementScore": "power"}]}),
    "limits[].name": Case("warmth", {"limits": [SCORE_LIMIT], "explain": True}),
    "limits[].maximum": Case(50, {"limits": [SCORE_LIMIT]}),
    "limits[].score.addonPlacementScore": Case(
        "power", {"limits": [{**SCORE_LIMIT, "maximum": 30}]}
    ),
    "limits[].score.scoreDimensionFormat": Case("${device};${app}", {"limits": [SCORE_LIMIT]}),
    "limits[].score.aggregation": Case("Min", {"limits": [LIMIT_OF_SEVERAL]}),
    "limits[].score.at": Case("p90", {"limits": [LIMIT_OF_SEVERAL]}),
    "limits[].uses": Case("heat", {**USES, **POWER_USE}),
    "limits[].clusterSelector": Case("zone=b", {**USES, **POWER_USE}),
    "limits[].per": Case("zone", {**USES, **POWER_USE}),
    "missingScore": Case(5, {"preference.scoreDimensionFormat": "x;${app};${device}"}),
    "gap": Case(
        0.5,
        {
            "clusters": body(clusters=MANY["clusters"])["clusters"],
            "targetWorkloads": body(workloads=MANY["apps"])["targetWorkloads"],
        },
        "many",
    ),
    "mig.reconfigure": Case("drain", instances(*({**item, "busy": True} for item in HELD))),
    "mig.reconfigureCost": Case(1, instances(*HELD)),
    "mig.drainCost": Case(
        1, instances(*({**item, "busy": True} for item in HELD), reconfigure="drain")
    ),
    "mig.maxCandidates": Case(1, MIG),
    "mig.discover": Case(True, {"clusters": [{"name": "worker01"}]}, "gpus"),
    "mig.keepAdvertised": Case(
        True, {"clusters": [{"name": "worker01"}], "mig.discover": True}, "gpus inventoried"
    ),
    "prune": Case(False, {"targetWorkloads": [{"name": "mwrs-app01"}]}, "applied"),
    "dryRun": Case(False),
    "rollout": Case("Stepwise"),
    "progressDeadlineSeconds": Case(5, {"rollout": "Stepwise", "dryRun": False}),
    "minReadySeconds": Case(5, {"rollout": "Stepwise", "dryRun": False}),
    "explain": Case(True),
    "explainWorkloads": Case(["mwrs-app01"]),
    "whyNot[].cluster": Case(
        "worker02", {"whyNot": [{"cluster": "worker01", "workload": "mwrs-app01"}]}
    ),
    "whyNot[].workload": Case(
        "mwrs-app02", {"whyNot": [{"cluster": "worker01", "workload": "mwrs-app01"}]}
    ),
    "whyNot[].device": Case(
        "2g.24gb", {"whyNot": [{"cluster": "worker01", "workload": "mwrs-app01"}]}
    ),
    "whyNot[].policy": Case(
        "2g.24gb-worker01", {"whyNot": [{"cluster": "worker01", "policy": "all-worker01"}]}
    ),
    "pareto": Case(["performance", "power"], {"objectives": [{"addonPlacementScore": "power"}]}),
    **tolerations("tolerations", {}),
    "clusterSets": Case(["none"]),
}
