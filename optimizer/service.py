"""The optimizer as a service: observe the hub, decide, apply."""

from collections.abc import Callable
from datetime import datetime

from dsf.kube.port import Kube
from optimizer.plan import Plan
from optimizer.refusal import RequestProblem
from optimizer.request import OptimizeRequest
from optimizer.results import Applied, ResetResult, ScoreObject
from optimizer.settings import DEFAULTS, Settings


class Optimizer:
    """Plans placements for the workloads of one hub, and applies the plans.

    All calls raise KubeError where the hub can't be read. `now` returns an aware datetime.
    """

    def __init__(
        self, kube: Kube, settings: Settings = DEFAULTS, *, now: Callable[[], datetime]
    ) -> None:
        self._kube = kube
        self._settings = settings
        self._now = now

    async def scores(
        self, *, namespace: str | None = None, name: str | None = None
    ) -> tuple[ScoreObject, ...]:
        """Return the AddOnPlacementScores of all clusters, or of one namespace or name."""
        raise NotImplementedError

    async def plan(self, request: OptimizeRequest) -> Plan | RequestProblem:
        """Observe and decide, write nothing."""
        raise NotImplementedError

    async def apply(self, plan: Plan) -> Applied | RequestProblem:
        """Apply exactly the changes of a plan; refuse where what it rests on has moved."""
        raise NotImplementedError

    async def reset(self, namespace: str) -> ResetResult:
        """Delete every generated Placement and PlacementBinding of a namespace."""
        raise NotImplementedError
