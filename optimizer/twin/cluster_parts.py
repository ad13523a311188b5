"""What the product runs on a managed cluster: its agent, and its policy watcher."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from prometheus_client import CollectorRegistry

from dsf.agent.fetch.answer_budget import AnswerBudget
from dsf.agent.fetch.http_exchange import CallLimits
from dsf.agent.metrics import AgentMetrics
from dsf.agent.publish.publisher import Publisher
from dsf.agent.round import RoundRunner
from dsf.agent.round_loop import Agent
from dsf.agent.run import NO_SUMMARIES, summaries_of
from dsf.api import names
from dsf.kube.kinds import CONFIG_MAP
from dsf.kube.port import Kube, find_object
from optimizer.twin.scoring_apis import ScoringApis, TwinScoringApi
from policy_watcher.run import PolicyWatcher, WatcherSettings


class ClusterParts:
    """Starts and stops the parts on one cluster.

    `configured` is to be set when the ConfigMap of the agent was written: a watch in each cluster
    would cost a third of what the rounds do.
    `base` is a runner of rounds whose clients all clusters share. `hub` and `managed` are the API
    servers as these parts reach them.
    """

    def __init__(
        self,
        name: str,
        base: RoundRunner,
        apis: ScoringApis,
        *,
        hub: Kube,
        managed: Kube,
        now: Callable[[], datetime],
    ) -> None:
        self._name = name
        self._hub, self._managed, self._now = hub, managed, now
        own = base.scoring
        scoring = TwinScoringApi(name, own.client, own.secrets, own.limits, apis=apis)
        budget = AnswerBudget(base.answer_budget.total)
        runner = replace(base, cluster=name, scoring=scoring, answer_budget=budget, now=now)
        self._runner = runner
        self.configured = asyncio.Event()
        self._tasks = dict[str, asyncio.Task[None]]()

    def keep(self, tasks: asyncio.TaskGroup, *, agent: bool, watcher: bool) -> None:
        """Start what has to run and does not; stop what runs and has not to."""
        for part, wanted, run in (
            ("agent", agent, self._run_agent),
            ("policy watcher", watcher, self._run_policy_watcher),
        ):
            if wanted and part not in self._tasks:
                self._tasks[part] = tasks.create_task(run())
            elif not wanted and part in self._tasks:
                self._tasks.pop(part).cancel()

    async def _run_agent(self) -> None:
        metrics = AgentMetrics(CollectorRegistry(), lambda: self._now().timestamp())
        publisher = Publisher(self._hub, self._name, self._now)
        agent = Agent(self._runner, publisher, metrics, CallLimits())
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(agent.run())
            while True:
                self.configured.clear()
                config = await find_object(
                    self._managed, CONFIG_MAP, names.CONFIG_MAP, names.AGENT_NAMESPACE
                )
                agent.configure(summaries_of(config) if config else NO_SUMMARIES)
                await self.configured.wait()

    async def _run_policy_watcher(self) -> None:
        settings = WatcherSettings(namespace=self._name)
        clock, registry = asyncio.get_running_loop().time, CollectorRegistry()
        await PolicyWatcher(self._managed, settings, clock=clock, registry=registry).run()
