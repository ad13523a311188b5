"""The demo's steps: score, optimise for performance and for power, roll back, plan by hardware.

Only the last score differs between the clusters, so it chooses clusters as well as profiles.
"""

import json
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any

from dsf.api.names import APP, CLUSTER_CLAIM
from dsf.cli.missing_scores import why_missing
from dsf.cli.output import TextTable
from dsf.kube import kinds
from dsf.kube.changes import Create, Delete
from dsf.kube.port import Object
from dsf.kube.yaml_documents import documents
from dsf.sim.controllers import mig_manager
from dsf.sim.controllers.mig_manager import GPU_RESOURCES
from dsf.sim.demo.authors_part import AuthorsPart, guide_setup, require_own_scores
from dsf.sim.demo.clusters import WORKLOAD_NAMESPACE, apply_or_fail
from dsf.sim.demo.output import (
    DemoOutput,
    comparison_table,
    inventory_table,
    placement_table,
    plan_tables,
    score_tables,
    table_of,
)
from dsf.sim.demo.processes import DemoError
from dsf.sim.demo.running_demo import (
    RunningDemo,
    get,
    post,
    refuse_writes,
    running_demo,
    stay,
    until,
    what_next,
)
from dsf.sim.demo.scorers import HARDWARE

PREFERENCES = {
    "performance": "example-performance-score",
    "power": "example-powerconsumption-score",
}
THROUGHPUT = "example-throughput-score"
"""The score that differs between the clusters, as their hardware does."""

STRANGERS_DEVICE = "nvidia.com/mig-3g.48gb"
"""What a Pod takes that no workload has, half of a GPU."""

STATUS = f"/placements/status?namespace={WORKLOAD_NAMESPACE}"

BESIDE_A_STRANGER = "performance beside a stranger's Pod"

KEYS = (*PREFERENCES, "throughput", BESIDE_A_STRANGER)
"""Names of the demo's own plans in its result."""

SCORES = ("sample-my-score", *PREFERENCES.values(), THROUGHPUT)


async def walk_through(
    output: DemoOutput,
    work_dir: Path,
    part: AuthorsPart | None = None,
    *,
    port: int,
    keep: bool,
    allow_writes: bool,
) -> None:
    """Run all steps; raise DemoError if one fails. With `keep`, stay until cancelled.

    `part` is what an author brings. While it stays, callers of the optimizer may write if
    `allow_writes`.
    """
    part = part or AuthorsPart()
    scorers = await part.asked()
    require_own_scores(scorers, (*SCORES, *KEYS))
    setup = guide_setup(part, scorers, output)
    async with running_demo(setup, output, work_dir, port) as demo:
        own = PREFERENCES.values() if part.prometheus_url else SCORES
        answers = await _run_steps(demo, own, [one.score for one in scorers])
        if keep and not allow_writes:
            await refuse_writes(demo)
        output.step("Results")
        output.show([comparison_table(answers)])
        output.finish({name: _result(answer) for name, answer in answers.items()})
        _what_next(demo, keep=keep)
        if keep:
            await stay(demo, _configure_mig)


async def _run_steps(
    demo: RunningDemo, own: Collection[str], of_author: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """Run all steps with the demo's own scores and those of an author."""
    # Before the scores: a scorer may ask for the workloads and policies.
    manifests = [_with_a_pod(document.value) for document in documents(scenario() / "manifests")]
    created = [Create(kind, obj) for obj in manifests if (kind := kinds.find(obj))]
    await apply_or_fail(demo.clusters.hub.kube, created)
    await _score(demo, {*own, *of_author})
    answers = {}
    for number, (name, score) in enumerate(PREFERENCES.items()):
        if number:
            await _reset(demo)
        answers[name] = await _optimize(demo, name, score)
        await _comply(demo)
        await _land(demo)
    await _show_status(demo)
    await _roll_back(demo)
    if THROUGHPUT in own:
        answers["throughput"] = await _plan_by_hardware(demo)
    answers[BESIDE_A_STRANGER] = await _plan_beside_a_stranger(demo)
    for score in of_author:
        answers[score] = await _plan_alone(demo, score)
    return answers


async def _score(demo: RunningDemo, scores: Collection[str]) -> None:
    demo.output.step("Agents read time series, call the scoring APIs, publish scores")
    hub, names = demo.clusters.hub.kube, [cluster.name for cluster in demo.clusters.managed]

    async def scored() -> bool:
        listed = (await hub.list(kinds.ADD_ON_PLACEMENT_SCORE)).items
        found = {
            (obj["metadata"]["namespace"], obj["metadata"]["name"])
            for obj in listed
            if obj.get("status", {}).get("scores")
        }
        return {(cluster, score) for cluster in names for score in scores} <= found

    try:
        await until(demo, scored, "scores of every scorer on every cluster")
    except DemoError as error:
        reasons = why_missing((await hub.list(kinds.DYNAMIC_SCORER)).items, None, ())
        raise DemoError("; ".join((f"{error}", *reasons))) from error
    listed = (await demo.clusters.hub.kube.list(kinds.ADD_ON_PLACEMENT_SCORE)).items
    demo.output.show(score_tables(listed))


async def _optimize(demo: RunningDemo, name: str, score: str) -> dict[str, Any]:
    demo.output.step(f"POST /optimize for {name}: {score}")
    return await _planned(demo, "/optimize", score)


async def _plan_by_hardware(demo: RunningDemo) -> dict[str, Any]:
    """Plan by scores that differ between the clusters, and write nothing."""
    demo.output.step(f"POST /optimize?dry_run=true for throughput: {THROUGHPUT}")
    for name, hardware in HARDWARE.items():
        demo.output.note(f"{name} has {hardware.product}")
    demo.output.note("the scores of the clusters differ, so they choose the clusters as well")
    return await _planned(demo, "/optimize?dry_run=true", THROUGHPUT)


async def _plan_beside_a_stranger(demo: RunningDemo) -> dict[str, Any]:
    """Plan while a Pod runs that no ManifestWork brought, and write nothing."""
    demo.output.step("Somebody starts a Pod by hand: the agent sees it, and the plan respects it")
    cluster = demo.clusters.managed[0]
    pod = _pod("notebook", {STRANGERS_DEVICE: "1"})

    async def reserved() -> bool:
        groups = (await _node_groups(demo)).get(cluster.name, ())
        return any(STRANGERS_DEVICE in group["requested"] for group in groups)

    async def released() -> bool:
        return not await reserved()

    await apply_or_fail(cluster.kube, [Create(kinds.POD, pod)])
    await until(demo, reserved, f"the inventory of {cluster.name} to have the Pod")
    demo.output.show([inventory_table(await _node_groups(demo), GPU_RESOURCES)])
    demo.output.note(f"POST /optimize?dry_run=true for {PREFERENCES['performance']}")
    answer = await _planned(demo, "/optimize?dry_run=true", PREFERENCES["performance"])
    await apply_or_fail(cluster.kube, [Delete(kinds.POD, "notebook", WORKLOAD_NAMESPACE)])
    await until(demo, released, f"the inventory of {cluster.name} to be without the Pod")
    return answer


def _with_a_pod(obj: Object) -> Object:
    """Return an object of the scenario; a workload has a Pod besides, which its clusters run."""
    if kinds.find(obj) is not kinds.MANIFEST_WORK_REPLICA_SET:
        return obj
    spec = obj["spec"]
    own = _pod(obj["metadata"]["labels"][APP], {"cpu": "500m"})
    manifests = [*spec["manifestWorkTemplate"]["workload"]["manifests"], own]
    return {**obj, "spec": {**spec, "manifestWorkTemplate": {"workload": {"manifests": manifests}}}}


def _pod(name: str, requests: Mapping[str, str]) -> Object:
    container = {"name": name, "image": name, "resources": {"requests": requests}}
    return kinds.POD.object(
        metadata={"name": name, "namespace": WORKLOAD_NAMESPACE}, spec={"containers": [container]}
    )


async def _plan_alone(demo: RunningDemo, score: str) -> dict[str, Any]:
    """Plan one workload by the score of an author, and write nothing.

    With both workloads, each cluster would have to run one, whatever the score is.
    """
    workload = "mwrs-app01"
    demo.output.step(f"POST /plan: where {score} places {workload} alone")
    alone = {"workloads": [workload], "request": {"prune": True}}
    question = {"namespace": WORKLOAD_NAMESPACE, "objective": {score: 1}, **alone}
    return _shown(demo, await post(demo, "/plan", question))


async def _planned(demo: RunningDemo, path: str, score: str) -> dict[str, Any]:
    request = json.loads((scenario() / "params.json").read_text(encoding="utf-8"))
    request["preference"] = {**request["preference"], "addonPlacementScore": score}
    return _shown(demo, await post(demo, path, request))


def _shown(demo: RunningDemo, answer: dict[str, Any]) -> dict[str, Any]:
    """Print an answer, and return it."""
    demo.output.note(f"{answer['status']}, objective {answer['objective_value']:g}")
    demo.output.show(plan_tables(answer))
    return answer


async def _comply(demo: RunningDemo) -> None:
    demo.output.step("Policies are enforced; workloads wait until they are compliant for a while")
    await until(demo, _claims(demo, "noncompliant"), "clusters to report noncompliant")
    demo.output.show([await _compliance(demo)])
    demo.output.note("the stand-in for the GPU operator finishes configuring MIG")
    await _configure_mig(demo)
    await until(demo, _claims(demo, "compliant"), "clusters to report compliant")
    demo.output.show([await _compliance(demo)])
    await until(demo, partial(_devices_seen, demo), "the inventories to have the new devices")


async def _devices_seen(demo: RunningDemo) -> bool:
    """Tell whether the agents report the resources that nodes advertise now."""
    reported = await _node_groups(demo)
    for cluster in demo.clusters.managed:
        nodes = (await cluster.kube.list(kinds.NODE)).items
        advertised = {resource for node in nodes for resource in node["status"]["allocatable"]}
        found = {
            resource
            for group in reported.get(cluster.name, ())
            for resource in group["allocatable"]
        }
        if found != advertised:
            return False
    return True


async def _node_groups(demo: RunningDemo) -> Mapping[str, list[dict[str, Any]]]:
    """Return the groups of equal nodes that the agent of each cluster reports."""
    found = (await demo.clusters.hub.kube.list(kinds.NODE_INVENTORY)).items
    return {obj["metadata"]["name"]: obj["status"].get("nodes") or [] for obj in found}


async def _configure_mig(demo: RunningDemo) -> None:
    for cluster in demo.clusters.managed:
        for node in (await cluster.kube.list(kinds.NODE)).items:
            await apply_or_fail(cluster.kube, mig_manager.finish(node))


async def _land(demo: RunningDemo) -> None:
    demo.output.step("Workloads land")
    hub = demo.clusters.hub.kube

    async def landed() -> bool:
        sets = (await hub.list(kinds.MANIFEST_WORK_REPLICA_SET)).items
        found = (await get(demo, STATUS))["workloads"]
        return len(found) == len(sets) and all(_runs(item) for item in found)

    await until(demo, landed, "Pods of the workloads to run")
    placements = (await hub.list(kinds.PLACEMENT, WORKLOAD_NAMESPACE)).items
    demo.output.show([placement_table(placements), await _landings(demo)])


async def _reset(demo: RunningDemo) -> None:
    demo.output.step("POST /reset: nothing generated is left")
    answer = await post(demo, "/reset", {"namespace": WORKLOAD_NAMESPACE})
    demo.output.note(f"deleted {len(answer['deleted'])}, failed {len(answer['failed'])}")
    await until(demo, _claims(demo, "empty"), "clusters to report empty")


async def _show_status(demo: RunningDemo) -> None:
    demo.output.step(f"GET {STATUS}: wanted and real, side by side")
    demo.output.show([await _landings(demo), await _compliance(demo)])


async def _landings(demo: RunningDemo) -> TextTable:
    found = [
        {**item, "pods": "{ready}/{wanted}".format_map(item["pods"])} if item["pods"] else item
        for item in (await get(demo, STATUS))["workloads"]
    ]
    return table_of(found, "workload", "cluster", "state", "reason", "pods")


def _runs(landing: Mapping[str, Any]) -> bool:
    """Tell whether a workload has landed, and its agent says that its Pods are ready."""
    return landing["state"] == "Landed" and bool(landing["pods"])


async def _compliance(demo: RunningDemo) -> TextTable:
    found = await get(demo, STATUS)
    return table_of(found["policies"], "cluster", "policy", "compliance", "claim")


async def _roll_back(demo: RunningDemo) -> None:
    demo.output.step("POST /rollback: back to the plan for performance")
    asked = {"namespace": WORKLOAD_NAMESPACE}
    planned = await post(demo, "/rollback", {**asked, "dryRun": True})
    demo.output.note("a dry run shows first what it would change")
    demo.output.show([table_of(planned["changes"], "action", "kind", "name")])
    answer = await post(demo, "/rollback", asked)
    demo.output.note(
        f"revision {answer['to_revision']} is restored, objective {answer['objective_value']:g}"
    )
    demo.output.show(plan_tables(answer))
    await _comply(demo)
    await _land(demo)
    path = f"/plans?namespace={WORKLOAD_NAMESPACE}"
    demo.output.step(f"GET {path}: every applied plan is on record")
    plans, columns = await get(demo, path), ("revision", "phase", "objective", "digest", "message")
    demo.output.show([table_of(plans["items"], *columns)])


def _claims(demo: RunningDemo, value: str) -> Callable[[], Awaitable[bool]]:
    async def reached() -> bool:
        claims = await _claim_values(demo)
        return all(claims.get(cluster.name) == value for cluster in demo.clusters.managed)

    return reached


async def _claim_values(demo: RunningDemo) -> dict[str, str]:
    clusters = (await demo.clusters.hub.kube.list(kinds.MANAGED_CLUSTER)).items
    return {
        cluster["metadata"]["name"]: claim["value"]
        for cluster in clusters
        for claim in cluster.get("status", {}).get("clusterClaims") or []
        if claim["name"] == CLUSTER_CLAIM
    }


def _result(answer: dict[str, Any]) -> dict[str, Any]:
    kept = ("status", "objective_value", "policies", "placements", "unplaced", "digest")
    return {key: answer[key] for key in kept}


def _what_next(demo: RunningDemo, *, keep: bool) -> None:
    what_next(demo, "" if keep else "`make demo ARGS=--keep` (or `dsf demo --keep`)")
    hub = demo.clusters.hub.kubeconfig
    demo.output.note(
        f"scores and plans: dsf scores --kubeconfig {hub}; dsf plan --kubeconfig {hub} --objective"
        " performance"
    )
    demo.output.note(
        "a request of your own: curl"
        f" --json @{scenario() / 'params.json'} '{demo.optimizer_url}/optimize?dry_run=true' (with"
        " the demo's --allow-writes, leave dry_run out: it is enforced, and its workloads land)"
    )
    demo.output.note(
        "an assistant: dsf mcp install --client CLIENT --no-token --url"
        f" {demo.optimizer_url}/mcp --write (the demo's --allow-writes lets it apply plans)"
    )


def scenario() -> Path:
    """Return the folder with the development guide's manifests and request."""
    return Path(str(resources.files("dsf.sim") / "scenario"))
