"""The development guide's change from performance to power, step by step, on the simulated OCM."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime, timedelta

from dsf.api.names import CLUSTER_CLAIM, REPLICA_SET_LABEL
from dsf.api.untrusted_text import InvalidInput
from dsf.kube import kinds
from dsf.kube.apply import apply
from dsf.kube.changes import diff
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.kinds import Kind
from dsf.kube.port import Kube, Object, WatchEvent
from dsf.sim.controllers import mig_manager
from optimizer.follow.rollout.rollout_record import RolloutRecord, rollout_record
from optimizer.plan.plan import Plan
from optimizer.service.namespace_lease import LEASE_NAME
from optimizer.service.optimizer import Optimizer
from optimizer.wire.request import OptimizeRequest
from optimizer.wire.request_problem import RequestProblem
from optimizer.wire.result import Applied
from optimizer.wire.rollout import RolloutCommand, RolloutStatus
from tests.dsf.sim.builders import NOW, make
from tests.optimizer.follow.placement_status.guide_run import SCENARIO, GuideRun, guide_run
from tests.optimizer.follow.rollout.coverage import uncovered_events
from tests.optimizer.inventories import renew

POWER = "example-powerconsumption-score"
PERFORMANCE = "example-performance-score"


@dataclass
class GuideRollout:
    """The guide's fleet, on which performance has landed; `now` is the time of all services."""

    run: GuideRun
    now: datetime = NOW

    @property
    def hub(self) -> EmbeddedHub:
        return self.run.hub

    def service(self, kube: Kube | None = None) -> Optimizer:
        """Return an optimizer as a new process has it."""
        return Optimizer(kube or self.hub, now=lambda: self.now)

    async def plan(self, score: str = POWER, **fields: object) -> Plan:
        planned = await self.service().plan(asked(score, **fields))
        assert isinstance(planned, Plan), planned
        return planned

    async def replace_record(self, name: str, spec: Mapping[str, object]) -> Object:
        """Delete a record and create another of its name and labels; return the deleted one."""
        found = await self.hub.get(kinds.PLACEMENT_PLAN, name, "default")
        await self.hub.delete(kinds.PLACEMENT_PLAN, name, "default")
        kept = ("name", "namespace", "labels")
        metadata = {key: found["metadata"][key] for key in kept}
        changed = {**found, "metadata": metadata, "spec": {**found["spec"], **spec}}
        await self.hub.create(kinds.PLACEMENT_PLAN, changed)
        return found

    async def begin(self, score: str = POWER, **fields: object) -> str:
        """Begin a rollout; return the name of its record."""
        applied = await self.service().apply(await self.plan(score, **fields))
        assert isinstance(applied, Applied), applied
        return applied.record

    async def refused(self, score: str = POWER, **fields: object) -> RequestProblem:
        """Return why a plan can't be applied."""
        refusal = await self.service().apply(await self.plan(score, **fields))
        assert isinstance(refusal, RequestProblem)
        return refusal

    async def record(self, name: str) -> RolloutRecord:
        record = rollout_record(await self.hub.get(kinds.PLACEMENT_PLAN, name, "default"))
        assert record is not None
        return record

    async def condition(self, name: str) -> tuple[str, str]:
        """Return status and reason of the condition Progressing."""
        record = await self.record(name)
        (found,) = [i for i in record.obj["status"]["conditions"] if i["type"] == "Progressing"]
        return found["status"], found["reason"]

    async def advance(self, name: str) -> bool:
        """Let a new process make one move."""
        return await self.service().rollouts.advance("default", name)

    async def finish(self, name: str, most: int = 100) -> RolloutRecord:
        """Let OCM and new processes work in turn until the rollout has ended."""
        for _ in range(most):
            await self.advance(name)
            await self.play()
            record = await self.record(name)
            if record.progress.ended:
                await self.advance(name)
                return await self.record(name)
        raise AssertionError(await self.condition(name))

    async def add_workload(self, name: str) -> None:
        """Add a workload like app01, with a Placement of its own."""
        kind = kinds.MANIFEST_WORK_REPLICA_SET
        like = await self.hub.get(kind, "mwrs-app01", "default")
        metadata = {"name": name, "namespace": "default", "labels": like["metadata"]["labels"]}
        references = [{**like["spec"]["placementRefs"][0], "name": f"{name}-placement"}]
        spec = {**like["spec"], "placementRefs": references}
        await self.hub.create(kind, {**like, "metadata": metadata, "spec": spec})

    async def command(self, command: RolloutCommand) -> None:
        """Pause, resume, undo or cancel the rollout."""
        changed = await self.service().rollouts.command("default", "default", command)
        assert isinstance(changed, RolloutStatus), changed

    async def names(self, kind: Kind) -> list[str]:
        return [item["metadata"]["name"] for item in (await self.hub.list(kind, "default")).items]

    async def bound(self) -> list[str]:
        """Return the policies that are bound."""
        bindings = (await self.hub.list(kinds.PLACEMENT_BINDING, "default")).items
        return sorted(subject["name"] for item in bindings for subject in item["subjects"])

    async def versions(self) -> list[str]:
        """Return the versions of all generated Placements and bindings."""
        return [
            item["metadata"]["resourceVersion"]
            for kind in (kinds.PLACEMENT, kinds.PLACEMENT_BINDING)
            for item in (await self.hub.list(kind, "default")).items
        ]

    async def until(self, name: str, reason: str, most: int = 100, *, mig: bool = True) -> None:
        """Work in turn until the condition Progressing has this reason."""
        for _ in range(most):
            while await self.advance(name):
                pass
            if (await self.condition(name))[1] == reason:
                return
            await self.play(mig=mig)
        raise AssertionError(await self.condition(name))

    async def play(self, *, mig: bool = True) -> None:
        """Let OCM, the MIG managers and the policy watchers do everything; a minute passes."""
        self.now += timedelta(minutes=1)
        await renew(self.hub, self.now)
        await self.run.settle()
        for name, cluster in self.run.fleet.clusters.items():
            if mig:
                for node in (await cluster.list(kinds.NODE)).items:
                    await apply(cluster, mig_manager.finish(node))
            await self.run.settle()
            await _watch_policies(name, cluster)
        await self.run.settle()

    async def running(self) -> set[str]:
        """Return `app on cluster` of what runs."""
        works = (await self.hub.list(kinds.MANIFEST_WORK, labels=REPLICA_SET_LABEL)).items
        return {f"{i['metadata']['name']} on {i['metadata']['namespace']}" for i in works}

    async def bury(self) -> None:
        """Let the Lease of a killed process expire."""
        held = (await self.hub.list(kinds.LEASE, "default")).items
        if held:
            await self.hub.delete(kinds.LEASE, LEASE_NAME, "default")

    async def check_history(self, since: str, name: str) -> Counter[str]:
        """Fail if at any event of the hub an app was uncovered that the plan kept covered.

        Returns how many events each app was uncovered for.
        """
        started = (tuple(item.split(" on ")) for item in self.started)
        pairs = [(app, cluster) for app, cluster in started]
        return uncovered_events(await self._events(since), await self.record(name), pairs)

    async def mark(self) -> str:
        """Remember what runs; return the version from which `check_history` looks."""
        self.started = await self.running()
        return (await self.hub.list(kinds.MANIFEST_WORK)).resource_version

    async def _events(self, since: str) -> list[WatchEvent]:
        found = list[WatchEvent]()
        for kind in (kinds.MANIFEST_WORK, kinds.PLACEMENT_PLAN):
            watch = self.hub.watch(kind, resource_version=since, timeout_seconds=0)
            async with aclosing(watch):
                found += [event async for event in watch if event.type != "BOOKMARK"]
        return found


def asked(score: str = POWER, **fields: object) -> OptimizeRequest:
    """Return the guide's request, with another preference and Stepwise."""
    request = json.loads((SCENARIO / "params.json").read_text())
    request["preference"]["addonPlacementScore"] = score
    return OptimizeRequest.model_validate({**request, "rollout": "Stepwise", **fields})


async def guide_rollout() -> GuideRollout:
    """Return the guide's fleet on which the plan for performance has landed."""
    run = await guide_run()
    await run.place()
    rollout = GuideRollout(run)
    await rollout.play()
    await rollout.play()
    assert await rollout.running() == {"mwrs-app01 on worker01", "mwrs-app02 on worker02"}
    return rollout


async def _watch_policies(name: str, cluster: EmbeddedHub) -> None:
    """Claim what a policy watcher claims at once."""
    policies = (await cluster.list(kinds.POLICY, name)).items
    states = [(item.get("status") or {}).get("compliant") == "Compliant" for item in policies]
    value = ("compliant" if all(states) else "noncompliant") if states else "empty"
    claim = make(kinds.CLUSTER_CLAIM, CLUSTER_CLAIM, spec={"value": value})
    before = (await cluster.list(kinds.CLUSTER_CLAIM)).items
    await apply(cluster, diff(kinds.CLUSTER_CLAIM, [claim], before))


def words(record: RolloutRecord) -> Iterator[str]:
    """Yield the steps in short."""
    assert not isinstance(record.plan, InvalidInput)
    for step in record.plan.steps:
        done = step.actions
        yield " ".join(
            (
                *(f"-{item.policy.split('-')[3]}@{item.cluster[-1]}" for item in done.release),
                *(f"+{item.policy.split('-')[3]}@{item.cluster[-1]}" for item in done.enforce),
                *(f"+{item.workload[-5:]}@{item.cluster[-1]}" for item in done.start),
                *(f"-{item.workload[-5:]}@{item.cluster[-1]}" for item in done.stop),
            )
        )
