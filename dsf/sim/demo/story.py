"""The development guide's story: score, optimise for performance, then for power."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx

from dsf.api.names import CLUSTER_CLAIM
from dsf.kube import kinds
from dsf.kube.embedded.folder import load
from dsf.kube.kinds import NODE
from dsf.sim import mig
from dsf.sim.demo import facts
from dsf.sim.demo.fleet import WORKLOAD_NAMESPACE, must
from dsf.sim.demo.processes import DemoError
from dsf.sim.demo.screen import Screen
from dsf.sim.demo.stage import Stage, scenario, set_stage
from dsf.sim.policy import ROOT_LABEL
from dsf.sim.replica_set import OWNER_LABEL

POLL_SECONDS = 0.1
STEP_SECONDS = 120.0
PREFERENCES = {
    "performance": "example-performance-score",
    "power": "example-powerconsumption-score",
}
SCORES = ("sample-my-score", *PREFERENCES.values())


async def tell(screen: Screen, work_dir: Path, *, port: int, keep: bool) -> None:
    """Tell the story; DemoError names the step that failed. With `keep` stay until cancelled."""
    async with set_stage(screen, work_dir, port) as stage:
        answers = await _acts(stage)
        screen.step("Results")
        screen.show([facts.comparison(answers)])
        screen.finish({name: _result(answer) for name, answer in answers.items()})
        _what_next(stage, keep=keep)
        if keep:
            await _stay(stage)


async def _acts(stage: Stage) -> dict[str, dict[str, Any]]:
    await _score(stage)
    load(stage.fleet.hub.kube, scenario() / "manifests")
    answers = {}
    for number, (name, score) in enumerate(PREFERENCES.items()):
        if number:
            await _reset(stage)
        answers[name] = await _optimize(stage, name, score)
        await _comply(stage)
        await _land(stage)
    return answers


async def _score(stage: Stage) -> None:
    stage.screen.step("Agents read time series, call the scoring APIs, publish scores")
    names = [worker.name for worker in stage.fleet.workers]

    async def scored() -> bool:
        listed = (await stage.fleet.hub.kube.list(kinds.ADD_ON_PLACEMENT_SCORE)).items
        found = {
            (obj["metadata"]["namespace"], obj["metadata"]["name"])
            for obj in listed
            if obj.get("status", {}).get("scores")
        }
        return {(cluster, score) for cluster in names for score in SCORES} <= found

    await _until(stage, scored, "scores of every scorer on every cluster")
    listed = (await stage.fleet.hub.kube.list(kinds.ADD_ON_PLACEMENT_SCORE)).items
    stage.screen.show(facts.score_tables(listed, names))


async def _optimize(stage: Stage, name: str, score: str) -> dict[str, Any]:
    stage.screen.step(f"POST /optimize for {name}: {score}")
    request = json.loads((scenario() / "params.json").read_text(encoding="utf-8"))
    request["preference"] = {**request["preference"], "addonPlacementScore": score}
    answer = await _post(stage, "/optimize", request)
    stage.screen.note(f"{answer['status']}, objective {answer['objective_value']:g}")
    stage.screen.show(facts.plan_tables(answer))
    return answer


async def _comply(stage: Stage) -> None:
    stage.screen.step("Policies are enforced; workloads wait until they are compliant for a while")
    await _until(stage, _claims(stage, "noncompliant"), "clusters to report noncompliant")
    await _show_compliance(stage)
    stage.screen.note("the stand-in for the GPU operator finishes configuring MIG")
    for worker in stage.fleet.workers:
        for node in (await worker.kube.list(NODE)).items:
            await must(worker.kube, mig.finish(node))
    await _until(stage, _claims(stage, "compliant"), "clusters to report compliant")
    await _show_compliance(stage)


async def _land(stage: Stage) -> None:
    stage.screen.step("Workloads land")
    hub = stage.fleet.hub.kube

    async def landed() -> bool:
        sets = (await hub.list(kinds.MANIFEST_WORK_REPLICA_SET)).items
        states = await _workloads(stage)
        return len(states) == len(sets) and all(state.delivered for state in states)

    await _until(stage, landed, "workloads to be delivered")
    placements = (await hub.list(kinds.PLACEMENT, WORKLOAD_NAMESPACE)).items
    stage.screen.show(
        [facts.placement_table(placements), facts.workload_table(await _workloads(stage))]
    )


async def _reset(stage: Stage) -> None:
    stage.screen.step("POST /reset: nothing generated is left")
    answer = await _post(stage, "/reset", {"namespace": WORKLOAD_NAMESPACE})
    stage.screen.note(f"deleted {len(answer['deleted'])}, failed {len(answer['failed'])}")
    await _until(stage, _claims(stage, "empty"), "clusters to report empty")


def _claims(stage: Stage, value: str) -> Callable[[], Awaitable[bool]]:
    async def reached() -> bool:
        claims = await _claim_values(stage)
        return all(claims.get(worker.name) == value for worker in stage.fleet.workers)

    return reached


async def _claim_values(stage: Stage) -> dict[str, str]:
    clusters = (await stage.fleet.hub.kube.list(kinds.MANAGED_CLUSTER)).items
    return {
        cluster["metadata"]["name"]: claim["value"]
        for cluster in clusters
        for claim in cluster.get("status", {}).get("clusterClaims") or []
        if claim["name"] == CLUSTER_CLAIM
    }


async def _show_compliance(stage: Stage) -> None:
    replicas = (await stage.fleet.hub.kube.list(kinds.POLICY, labels=ROOT_LABEL)).items
    states = facts.policy_states(replicas)
    stage.screen.show([facts.policy_table(states, await _claim_values(stage))])


async def _workloads(stage: Stage) -> list[facts.WorkloadState]:
    works = (await stage.fleet.hub.kube.list(kinds.MANIFEST_WORK, labels=OWNER_LABEL)).items
    return [
        facts.WorkloadState(
            work["metadata"]["name"],
            work["metadata"]["namespace"],
            any(
                condition["type"] == "Available" and condition["status"] == "True"
                for condition in work.get("status", {}).get("conditions") or []
            ),
        )
        for work in works
    ]


async def _until(stage: Stage, reached: Callable[[], Awaitable[bool]], what: str) -> None:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + STEP_SECONDS
    while not await reached():
        stage.running.check()
        if loop.time() > deadline:
            raise DemoError(f"waited {STEP_SECONDS:g} s in vain for {what}")
        await asyncio.sleep(POLL_SECONDS)


async def _post(stage: Stage, path: str, body: Any) -> dict[str, Any]:
    async with httpx.AsyncClient(trust_env=False, timeout=STEP_SECONDS) as client:
        try:
            response = await client.post(stage.optimizer_url + path, json=body)
        except httpx.HTTPError as error:
            raise DemoError(f"POST {path}: {type(error).__name__}: {error}") from error
    if not response.is_success:
        raise DemoError(f"POST {path} answered {response.status_code}: {response.text}")
    answer: dict[str, Any] = response.json()
    return answer


def _result(answer: dict[str, Any]) -> dict[str, Any]:
    kept = ("status", "objective_value", "policies", "placements", "unplaced", "digest")
    return {key: answer[key] for key in kept}


def _what_next(stage: Stage, *, keep: bool) -> None:
    screen, hub = stage.screen, stage.fleet.hub
    screen.step("What to try next")
    if not keep:
        screen.note("with `make demo ARGS=--keep` (or `dsf demo --keep`) all of it stays up; then:")
    screen.note(f"the API docs: {stage.optimizer_url}/docs")
    screen.note(
        f"the hub: kubectl --kubeconfig {hub.kubeconfig} get dynamicscorers,addonplacementscores -A"
    )
    screen.note(f"an assistant: connect it to {stage.optimizer_url}/mcp")


async def _stay(stage: Stage) -> None:
    stage.screen.note("everything stays up; Ctrl-C ends it")
    while True:
        stage.running.check()
        await asyncio.sleep(1)
