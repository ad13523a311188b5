"""A solver that dies: the plan that is left is told as such, at every door."""

import asyncio
import contextlib
import json
import multiprocessing
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from dsf.kube import kinds
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.embedded.http.server import kubeconfig, serving
from optimizer.cli.planning import plan
from optimizer.cli.records import plans
from optimizer.cli.status import status
from optimizer.domain.settings import DEFAULTS, OptimizerSettings
from optimizer.domain.solution import ProcessFailure
from optimizer.explain.explanation_process import Explained, explained
from optimizer.service.optimizer import Optimizer
from optimizer.snapshot.observation import Observation
from optimizer.solve.supervised_process import SupervisedResult
from optimizer.wire.explanation import Explanation
from tests.command_line import invoked, invoked_meanwhile
from tests.optimizer.build import NOW, body, managed_cluster, policy, score, workload
from tests.optimizer.cli.test_object_files import FOLDERS, SCENARIO
from tests.optimizer.hubs import hub_of
from tests.optimizer.service.test_metrics import client, samples

PATIENT = replace(DEFAULTS, time_limit_seconds=3_000)
"""Nothing here reaches a limit of time."""

DEVICES = {"2g": 241, "3g.48gb": 199}

LARGE = (30, 120)
"""Clusters and workloads whose solve takes far longer than to notice its process."""

MIDDLE = (20, 80)
"""The same, with a solve that soon ends."""

SMALL = (5, 29)
"""The same for CBC, as one model without blocks."""


def fleet(clusters: int, workloads: int) -> Observation:
    """A fleet whose best plan is hard to find: each workload is worth about what it requests."""
    names, apps = _names(clusters, workloads)
    amounts = {app: 31 + 37 * number % 59 for number, app in enumerate(apps)}
    entries = {
        cluster: {
            f"{app};{device}": amounts[app] // 2 + (17 * i * i + 31 * j * j + 7 * i * j) % 47
            for j, app in enumerate(apps)
            for device in DEVICES
        }
        for i, cluster in enumerate(names)
    }
    return Observation(
        managed_clusters=tuple(managed_cluster(name, cluster_name=name) for name in names),
        policies=tuple(
            policy(f"{device}-{name}", device, supply + 3 * number)
            for number, name in enumerate(names)
            for device, supply in DEVICES.items()
        ),
        workloads=tuple(workload(f"mwrs-{app}", app, amounts[app]) for app in apps),
        scores=tuple(score(name, "performance", entries[name]) for name in names),
    )


def asked(clusters: int, workloads: int, **changed: Any) -> dict[str, Any]:
    """A request for all of such a fleet."""
    names, apps = _names(clusters, workloads)
    return {
        **body(workloads=[f"mwrs-{app}" for app in apps]),
        "clusters": [
            {"name": name, "availablePolicies": [{"name": f"{d}-{name}"} for d in DEVICES]}
            for name in names
        ],
        **changed,
    }


def _names(clusters: int, workloads: int) -> tuple[list[str], list[str]]:
    return [f"c{number}" for number in range(clusters)], [f"a{n}" for n in range(workloads)]


ONE_CLUSTER = body(clusters=["worker01"])
"""The guide's request for one cluster: greedy finds its best plan, and can't prove it."""


def children(parent: int) -> Iterator[int]:
    """Yield the processes that a process started and that still run."""
    for listed in Path(f"/proc/{parent}/task").glob("*/children"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            for pid in listed.read_text().split():
                if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
                    yield int(pid)


def fork_servers() -> Iterator[int]:
    for pid in children(os.getpid()):
        if b"multiprocessing.forkserver" in Path(f"/proc/{pid}/cmdline").read_bytes():
            yield pid


def written(pid: int) -> int:
    """The bytes that a process has written."""
    try:
        lines = Path(f"/proc/{pid}/io").read_text().splitlines()
    except OSError:
        return 0
    return int(dict(line.split(": ") for line in lines)["wchar"])


def has_its_task(pid: int) -> bool:
    """Whether a process has read what it is to do: it leads a group of its own then."""
    try:
        return os.getpgid(pid) == pid
    except ProcessLookupError:
        return False


@asynccontextmanager
async def each_killed(
    when: Callable[[int], bool] = lambda _pid: True, *, below: bool = False
) -> AsyncIterator[set[int]]:
    """Kill each process that the fork server starts from now on, as soon as `when` says so of it.

    None is killed before it has its task: its start would be tried again. `below`: not these
    processes, but those that they start.
    """
    killed = set[int]()
    earlier = {pid for server in fork_servers() for pid in children(server)}

    async def kill() -> None:
        while True:
            started = [pid for server in fork_servers() for pid in children(server)]
            started = [pid for pid in started if pid not in earlier and has_its_task(pid)]
            if below:
                started = [pid for above in started for pid in children(above)]
            for pid in started:
                if pid not in killed and when(pid):
                    os.kill(pid, signal.SIGKILL)
                    killed.add(pid)
            await asyncio.sleep(0)

    killing = asyncio.create_task(kill())
    try:
        yield killed
    finally:
        killing.cancel()
        await asyncio.gather(killing, return_exceptions=True)


@contextmanager
def nothing_starts() -> Iterator[None]:
    """Kill the fork server, and let no other come up."""
    resource_tracker.ensure_running()  # else its next start, which fails too, is a warning
    for pid in fork_servers():
        os.kill(pid, signal.SIGKILL)
    multiprocessing.set_executable("/bin/false")
    try:
        yield
    finally:
        multiprocessing.set_executable(sys.executable)


async def optimized(
    http: httpx.AsyncClient, request: Mapping[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    """The response of POST /optimize, and the messages of its issues SolverFailed."""
    response = await http.post("/optimize", json=request, timeout=None)
    assert response.status_code == 200, response.text
    found = response.json()
    return found, [item["message"] for item in found["gaps"] if item["reason"] == "SolverFailed"]


def served(hub: EmbeddedHub, settings: OptimizerSettings = PATIENT) -> Any:
    return client(Optimizer(hub, settings, now=lambda: NOW))


async def test_a_killed_solver_is_told_with_how_good_the_plan_is(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with served(await hub_of(fleet(*LARGE))) as http, each_killed() as killed:
        found, said = await optimized(http, asked(*LARGE, dryRun=True))
        counted = await samples(http)
    assert len(killed) == 1
    assert found["status"] == "Feasible"
    assert len(found["placements"]) > 0
    (message,) = said
    assert "killed by SIGKILL" in message
    assert f"up to {found['gap']:.2%} more" in message
    assert "plan again" in message
    assert found["gaps"][0]["reason"] == "SolverFailed"
    assert counted["solver_failures_total Killed"] == 1
    assert counted["solver_failures_total Crashed"] == 0
    (warning,) = [item for item in caplog.records if item.levelname == "WARNING"]
    assert (warning.message, vars(warning)["cause"]) == ("the solver failed", "Killed")


async def test_a_solver_that_is_killed_later_leaves_what_it_had_reported() -> None:
    async with (
        served(await hub_of(fleet(*LARGE))) as http,
        each_killed(lambda pid: written(pid) > 1_000) as killed,
    ):
        found, said = await optimized(http, asked(*LARGE, dryRun=True))
    assert len(killed) == 1
    assert "after it had reported this decision" in said[0]
    assert found["status"] == "Feasible"


async def test_a_solver_that_can_not_be_started_is_told() -> None:
    hub = await hub_of()
    async with served(hub) as http:
        with nothing_starts():
            found, said = await optimized(http, body())
        assert len(found["placements"]) == 2
        assert "could not be started" in said[0]
        assert (await samples(http))["solver_failures_total NotStarted"] == 1
        again, said = await optimized(http, body())
    assert (again["status"], said) == ("Optimal", [])


async def test_a_solver_without_enough_memory_is_told() -> None:
    async with served(await hub_of(fleet(*LARGE)), replace(PATIENT, memory_mib=1)) as http:
        found, said = await optimized(http, asked(*LARGE, dryRun=True))
        assert "reached its memory limit" in said[0]
        assert "with a higher memory limit" in said[0]
        assert (await samples(http))["solver_failures_total MemoryLimit"] == 1
    assert found["status"] == "Feasible"


async def test_a_solver_whose_program_is_killed_is_told() -> None:
    """CBC is a program of its own: the process that calls it lives on when it dies."""
    settings = replace(PATIENT, solver="cbc")
    async with (
        served(await hub_of(fleet(*SMALL)), settings) as http,
        each_killed(below=True) as killed,
    ):
        found, said = await optimized(http, asked(*SMALL, dryRun=True))
        counted = await samples(http)
    assert killed
    assert found["status"] == "Feasible"
    assert "of the solver failed" in said[0]
    assert counted["solver_failures_total CallFailed"] == 1


async def test_an_explanation_whose_process_is_killed_says_so() -> None:
    hub = await hub_of(fleet(*MIDDLE))
    seen = list[int]()

    def is_second(pid: int) -> bool:
        if pid not in seen:
            seen.append(pid)
        return seen.index(pid) == 1

    async with served(hub) as http, each_killed(is_second) as killed:
        found, said = await optimized(http, asked(*MIDDLE, dryRun=True, explain=True))
        counted = await samples(http)
    assert (len(killed), said) == (1, [])
    missing = found["explanation"]["not_computed"]
    assert "killed by SIGKILL" in missing[-1]
    assert counted["explanation_failures_total Killed"] == 1


def test_an_explanation_names_what_its_end_cost() -> None:
    part = Explanation(not_computed=("2 conflicts: late",))
    failure = ProcessFailure("Killed", "was killed")
    ends: tuple[tuple[SupervisedResult[Explained], tuple[str, ...]], ...] = (
        (SupervisedResult((part, None), finished=True), ()),
        (SupervisedResult((part, None)), ("everything after that: its process did not stop",)),
        (SupervisedResult(), ("everything: its process did not stop at its time limit",)),
        (
            SupervisedResult((part, None), failure=failure),
            ("everything after that: its process was",),
        ),
        (SupervisedResult(failure=failure), ("everything: its process was killed",)),
    )
    for ended, missing in ends:
        found, _ = explained(ended)
        known = part.not_computed if ended.last else ()
        told = found.not_computed[len(known) :]
        assert found.not_computed[: len(known)] == known
        assert len(told) == len(missing)
        assert all(map(str.startswith, told, missing))


async def test_nothing_is_told_of_a_solver_that_ended_by_itself() -> None:
    async with served(await hub_of()) as http:
        _, said = await optimized(http, {**body(), "explain": True})
        counted = await samples(http)
    assert said == []
    assert not [name for name, value in counted.items() if "_failures_total" in name and value]


async def test_the_record_keeps_it_until_a_solve_that_does_not_fail_decides_the_same(
    tmp_path: Path,
) -> None:
    hub = await hub_of()
    async with served(hub) as http, serving(hub) as url:
        config = tmp_path / "hub.kubeconfig"
        config.write_text(yaml.safe_dump(kubeconfig(url)), encoding="utf-8")

        async def told() -> tuple[str, ...]:
            """What dsf plans, dsf status of the namespace and of the hub, and GET /fleet say."""
            hub_option = f"--kubeconfig={config}"
            return (
                (await invoked_meanwhile(plans, hub_option, "-n", "default"))[1],
                (await invoked_meanwhile(status, hub_option, "-n", "default"))[1],
                (await invoked_meanwhile(status, hub_option))[1],
                (await http.get("/fleet", params={"namespace": "default"})).text,
            )

        with nothing_starts():
            found, _ = await optimized(http, ONE_CLUSTER)
        assert (found["status"], found["applied"]) == ("Feasible", True)
        condition = await solver_condition(hub)
        assert (condition["status"], condition["reason"]) == ("True", "NotStarted")
        for text in await told():
            assert "the solver failed: its process could not be started" in text
        (listed,) = (await http.get("/plans", params={"namespace": "default"})).json()["items"]
        assert (listed["phase"], listed["reason"]) == ("Applied", "Written")

        again, _ = await optimized(http, ONE_CLUSTER)
        assert (again["status"], again["changes"]) == ("Optimal", [])
        condition = await solver_condition(hub)
        assert (condition["status"], condition["reason"]) == ("False", "SolvedAgain")
        for text in await told():
            assert "the solver failed" not in text


async def solver_condition(hub: EmbeddedHub) -> dict[str, str]:
    """The condition SolverFailed of the only PlacementPlan."""
    (record,) = (await hub.list(kinds.PLACEMENT_PLAN, "default")).items
    return next(item for item in record["status"]["conditions"] if item["type"] == "SolverFailed")


def test_the_command_says_it_in_its_first_line(tmp_path: Path) -> None:
    one_cluster = json.loads((SCENARIO / "params.json").read_text(encoding="utf-8"))
    one_cluster["clusters"] = one_cluster["clusters"][:1]
    request = tmp_path / "one-cluster.json"
    request.write_text(json.dumps(one_cluster), encoding="utf-8")
    with nothing_starts():
        code, told, _ = invoked(plan, *FOLDERS, f"--request={request}")
    assert code == 0
    assert told.startswith("Feasible, the solver failed: objective 60")
    assert "SolverFailed" in told
