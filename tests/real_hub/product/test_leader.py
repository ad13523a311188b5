"""Two controllers as two processes: one leads, and the other takes over when it is killed."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from tests.eventually import until

from ..harness.ports import LOOPBACK
from ..harness.processes import ProcessDied
from .parts import Part
from .test_quiet import CONTROLLER, more_of, writes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..harness.api import Object
    from ..harness.hub import Hub

LEASE = ("coordination.k8s.io/v1", "Lease", "dynamic-scoring-controller")
SCORER = ("dynamic-scoring.open-cluster-management.io/v1alpha1", "DynamicScorer")


def leads(part: Part) -> bool:
    """Whether a process reports that it leads."""
    return part.metric("leader_election_master_status", name=LEASE[2]) == 1


class Standby(Part):
    """The same Deployment as another process."""

    @property
    def process(self) -> str:
        """Name of its process."""
        return f"{self.plane.name}-{self.deployment}-standby"


@pytest.fixture
def standby(hub: Hub, framework: str, controller: Part) -> Iterator[Part]:
    """A second replica of the controller, with the same rights."""
    port = hub.ports.free()
    arguments = (f"--metrics-bind-address={LOOPBACK}:{port}",)
    second = Standby(hub, framework, controller.deployment, port, arguments)
    second.start()
    yield second
    with suppress(ProcessDied):  # a test that passes has stopped it
        second.stop()


def settled(hub: Hub, framework: str, controller: Part) -> list[tuple[str, str]]:
    """The controller's writes, once no further one follows."""

    def silent() -> list[tuple[str, str]] | None:
        before = writes(hub.audited(CONTROLLER.format(framework)))
        more_of(controller, "dsf_reconcile_total", controller="fleet", result="success")
        return before if writes(hub.audited(CONTROLLER.format(framework))) == before else None

    return until("the last news to be written", silent)


def test_the_other_takes_over_when_the_leader_is_killed(
    hub: Hub, framework: str, controller: Part, standby: Part, scored: dict[object, Object]
) -> None:
    until("the first one to lead", lambda: leads(controller))
    assert not leads(standby)
    before = settled(hub, framework, controller)
    controller.kill()
    until("the other one to lead", lambda: leads(standby))
    holder = hub.api.get(*LEASE, framework)["spec"]
    assert holder["leaseTransitions"] > 0
    until(
        "the new leader to have planned",
        lambda: standby.metric("dsf_reconcile_total", controller="fleet", result="success") > 2,
    )
    assert writes(hub.audited(CONTROLLER.format(framework))) == before
    controller.start()
    assert not leads(controller)
    standby.stop()
    until("the first one to lead again", lambda: leads(controller))
