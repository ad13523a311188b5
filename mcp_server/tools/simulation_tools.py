"""The tool that simulates other settings over what was recorded."""

import asyncio

from fastmcp.tools.base import ToolResult

from dsf.api.untrusted_text import MESSAGE_LIMIT, cleaned
from dsf.kube.access_reviews import right
from dsf.kube.kinds import PLACEMENT_OPTIMIZATION
from mcp_server.tools.arguments import Hours, Namespace, Optimization, Settings
from mcp_server.tools.hub_calls import CallerRights, answer, asked, granted, refused, with_progress
from optimizer.operations.access.rights import planning_rights, record_rights

_FIGURES = (
    "Value: the weighted sum of scores that plans maximise, as its mean over the time. Regret: what"
    " it lacks of the best possible."
)


class SimulationTools:
    """The tool that simulates, for a server that knows a Prometheus; it writes nothing."""

    def __init__(self, caller: CallerRights) -> None:
        self._caller = caller
        self._runs = asyncio.Lock()

    async def simulate_settings(
        self,
        settings: Settings = {},  # noqa: B006 - never changed
        hours: Hours = 24,
        namespace: Namespace = "default",
        optimization: Optimization = "default",
    ) -> ToolResult:
        """Replay the last hours with other settings of a PlacementOptimization; write nothing.

        Compares value, regret and moves with today's settings and with what was applied. Takes up
        to 90 s.
        """
        kept = right("list", PLACEMENT_OPTIMIZATION, namespace)
        rights = (*planning_rights(namespace), *record_rights(namespace), kept)
        granted(await self._caller().refusal(rights))
        if self._runs.locked():
            raise refused("another simulation runs: call again later")
        async with self._runs:
            return await asked(self._simulated(settings, hours, namespace, optimization))

    async def _simulated(
        self, settings: Settings, hours: int, namespace: str, optimization: str
    ) -> ToolResult:
        # Loaded when it is asked: the twin takes a second of imports.
        from optimizer.twin.evaluation.recorded_hub import record_of_hub  # noqa: PLC0415
        from optimizer.twin.evaluation.report import table  # noqa: PLC0415
        from optimizer.twin.evaluation.settings_question import SettingsQuestion, simulated  # noqa: PLC0415

        service = self._caller().service
        record = await record_of_hub(service.hub, namespace, optimization)
        question = SettingsQuestion(record, service.prometheus_url, hours, settings)
        found = await with_progress(simulated(question), self._caller(), "Simulating")
        if isinstance(found, str):
            raise refused(cleaned(found, MESSAGE_LIMIT))
        return answer(f"{_FIGURES}\n{table(found)}", found)
