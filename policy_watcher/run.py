"""The loop of the policy watcher: read the policies, decide, write the ClusterClaim."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from prometheus_client import REGISTRY, CollectorRegistry, Gauge

from dsf.api import names
from dsf.kube.apply import apply
from dsf.kube.kinds import CLUSTER_CLAIM, POLICY
from dsf.kube.port import Kube, Object, find_object
from dsf.runtime.backoff import Backoff
from dsf.runtime.reconcile.controller import Controller, WorkQueue
from policy_watcher.compliance import (
    ClaimValue,
    PolicyCompliance,
    StableWindow,
    claim_changes,
    policy_compliance,
    published_claim,
    resume,
    step,
)

log = logging.getLogger(__name__)

POLICIES = "policies"
CLAIMS: tuple[ClaimValue, ...] = ("compliant", "noncompliant", "empty")


@dataclass(frozen=True, slots=True)
class WatcherSettings:
    """Which policies are read, how often, and how long they must have been Compliant."""

    poll_seconds: float = 30.0
    stable_seconds: float = 120.0
    claim_name: str = names.CLUSTER_CLAIM
    namespace: str = "default"


class PolicyWatcher:
    """Writes the ClusterClaim that reports the compliance of the policies of a namespace.

    It reads the policies every `poll_seconds`, so it misses a change that is undone before the next
    read. While it can't read them, the claim stays as it is.

    Metrics: `policy_watcher_claim{value}`, `policy_watcher_policies{compliant}`, and the metrics of
    every controller under the name `policies`.
    """

    def __init__(
        self,
        kube: Kube,
        settings: WatcherSettings | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        registry: CollectorRegistry = REGISTRY,
    ) -> None:
        self._kube = kube
        self._settings = settings or WatcherSettings()
        self._clock = clock
        self._window: StableWindow | None = None
        self._succeeded = False
        queue = WorkQueue(Backoff(0.5, max(1.0, self._settings.poll_seconds)))
        self._loop = Controller(POLICIES, self._reconcile, queue=queue, registry=registry)
        self._claims = Gauge(
            "policy_watcher_claim",
            "1 for the value of the claim, 0 for others.",
            ["value"],
            registry=registry,
        )
        self._policies = Gauge(
            "policy_watcher_policies", "Policies by compliance.", ["compliant"], registry=registry
        )

    async def unready_reason(self) -> str | None:
        """Return why the claim may be out of date; None if it is not."""
        return None if self._succeeded else "can't read the policies or write the ClusterClaim"

    async def run(self) -> None:
        """Run until cancelled."""
        self._loop.enqueue(POLICIES)
        await self._loop.run()

    async def _reconcile(self, _: str) -> float:
        done = False
        try:
            await self._update_claim()
            done = True
        finally:
            self._succeeded = done
        return self._settings.poll_seconds

    async def _update_claim(self) -> None:
        compliance = policy_compliance(
            (await self._kube.list(POLICY, self._settings.namespace)).items
        )
        observed = await find_object(self._kube, CLUSTER_CLAIM, self._settings.claim_name)
        value = self._decide(compliance, observed)
        for outcome in await apply(
            self._kube, claim_changes(self._settings.claim_name, value, compliance, observed)
        ):
            if outcome.error:
                raise outcome.error
            log.info("claim written", extra={"value": value, "policies": len(compliance.policies)})
        self._show(compliance, value)

    def _decide(self, compliance: PolicyCompliance, observed: Object | None) -> ClaimValue:
        now, stable = self._clock(), self._settings.stable_seconds
        if self._window is None:
            value, digest = published_claim(observed)
            self._window = resume(
                compliance, now, published=value, digest=digest, stable_seconds=stable
            )
        self._window, decided = step(self._window, compliance, now, stable_seconds=stable)
        return decided

    def _show(self, compliance: PolicyCompliance, value: ClaimValue) -> None:
        for name in CLAIMS:
            self._claims.labels(name).set(name == value)
        self._policies.labels("true").set(len(compliance.compliant))
        self._policies.labels("false").set(len(compliance.policies - compliance.compliant))
