"""The development guide's optimisation on the simulated OCM, one step at a time."""

import json
from dataclasses import dataclass
from pathlib import Path

import yaml

import dsf.sim
from dsf.kube import kinds
from dsf.kube.apply import apply
from dsf.kube.embedded import EmbeddedHub
from dsf.sim.controllers import mig_manager
from optimizer.plan.plan import Plan
from optimizer.service.optimizer import Optimizer
from optimizer.wire.placement_status import PlacementStatus
from optimizer.wire.request import OptimizeRequest
from optimizer.wire.result import Applied
from tests.dsf.sim.builders import NOW, SimulatedFleet, make, simulated_fleet
from tests.mcp_server.service import put

SCENARIO = Path(dsf.sim.__file__).parent / "scenario"
CLAIM = "policy-watcher-claim"


@dataclass(frozen=True)
class GuideRun:
    """A simulated fleet with the guide's objects, and its optimizer."""

    fleet: SimulatedFleet
    optimizer: Optimizer

    @property
    def hub(self) -> EmbeddedHub:
        return self.fleet.hub

    async def place(self) -> None:
        """Apply the guide's plan for performance; OCM does nothing yet."""
        request = json.loads((SCENARIO / "params.json").read_text())
        plan = await self.optimizer.plan(OptimizeRequest.model_validate(request))
        assert isinstance(plan, Plan)
        assert isinstance(await self.optimizer.apply(plan), Applied)

    async def divide_gpus(self, cluster: str) -> None:
        """Let the MIG manager finish, which makes the policy compliant."""
        kube = self.fleet.clusters[cluster]
        node = await kube.get(kinds.NODE, f"{cluster}-control-plane")
        await apply(kube, mig_manager.finish(node))
        await self.settle()

    async def claim(self, cluster: str, value: str) -> None:
        """Claim what the policy watcher claims."""
        claim = make(kinds.CLUSTER_CLAIM, CLAIM, spec={"value": value})
        await self.fleet.clusters[cluster].create(kinds.CLUSTER_CLAIM, claim)
        await self.settle()

    async def land(self) -> None:
        """Place, and do everything else until all workloads run."""
        await self.place()
        await self.settle()
        for cluster in self.fleet.clusters:
            await self.divide_gpus(cluster)
            await self.claim(cluster, "compliant")

    async def settle(self) -> None:
        await self.fleet.simulation.settle()

    async def status(self) -> PlacementStatus:
        return await self.optimizer.placement_status("default")

    async def states(self) -> dict[str, tuple[str, str]]:
        """State and reason by cluster; the guide places one workload on each."""
        found = (await self.status()).workloads
        assert len(found) == len(self.fleet.clusters)
        return {item.cluster: (item.state, item.reason) for item in found}


async def guide_run() -> GuideRun:
    fleet = await simulated_fleet()
    for folder in ("manifests", "scores"):
        for path in sorted((SCENARIO / folder).iterdir()):
            for obj in yaml.safe_load_all(path.read_text()):
                await put(fleet.hub, obj)
    return GuideRun(fleet, Optimizer(fleet.hub, now=lambda: NOW))
