"""The picture of a plan: well-formed whatever others name, bounded, changes first."""

import asyncio
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from dsf.kube.clock import utc_now
from optimizer.plan.plan import Plan
from optimizer.plan.text.picture import MOST_CLUSTERS, svg
from optimizer.service.optimizer import Optimizer
from optimizer.wire.request_problem import RequestProblem
from optimizer.wire.result import MoveAction, WorkloadMove, WorkloadPlace
from tests.house.marker import MARKER, raw
from tests.optimizer.build import request
from tests.optimizer.hubs import hub_of

MARKUP = '</text><script href="x">alert(1)</script>&amp;\x1b[31m\ufffe'


@pytest.fixture(scope="module")
def plan() -> Plan:
    async def planned() -> Plan | RequestProblem:
        return await Optimizer(await hub_of(), now=utc_now).plan(request("performance"))

    made = asyncio.run(planned())
    assert isinstance(made, Plan)
    return made


def move(name: str, action: MoveAction, before: str = "", after: str = "") -> WorkloadMove:
    def places(cluster: str) -> tuple[WorkloadPlace, ...]:
        return (WorkloadPlace(cluster=cluster, device="1g", scores={}),) if cluster else ()

    return WorkloadMove(
        workload=name, action=action, before=places(before), after=places(after), gain={}
    )


def words(plan: Plan, *moves: WorkloadMove) -> list[str]:
    root = ET.fromstring(svg(replace(plan, moves=moves)))  # noqa: S314 - our own picture
    assert {item.tag.rpartition("}")[2] for item in root.iter()} <= {
        *("svg", "title", "desc", "style", "text", "rect")
    }
    return ["".join(item.itertext()) for item in root.iter() if item.tag.endswith("}text")]


def test_each_cluster_has_its_workloads_before_and_after(plan: Plan) -> None:
    said = words(plan, move("chat", "moves", "east", "west"), move("idle", "waits"))
    east, west = ["east", "chat on 1g", "moves", "east", "nothing"], ["west", "nothing"]
    assert said[-10:] == [*east, *west, "west", "chat on 1g", "moves"]
    assert "idle on 1g" not in said


@pytest.mark.parametrize("name", [MARKUP, MARKER, "x" * 300])
def test_names_are_text_and_never_markup(plan: Plan, name: str) -> None:
    said = words(plan, move(name, "moves", name, "west"))
    assert not any(raw(text) for text in said)
    assert len(svg(replace(plan, moves=(move(name, "moves", name, "west"),)))) < 6000


def test_a_large_fleet_shows_what_changes_first_and_counts_the_rest(plan: Plan) -> None:
    staying = [
        move(f"w{number}", "stays", f"c{number:04}", f"c{number:04}") for number in range(200)
    ]
    said = words(plan, *staying, move("late", "starts", "", "z"))
    assert "late on 1g" in said
    assert said[-1] == f"{201 - MOST_CLUSTERS} clusters more are not drawn."
