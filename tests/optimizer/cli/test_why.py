"""`dsf why` against a hub over HTTP: the explanation of the MCP tool, in a terminal."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from dsf.kube.embedded.http.server import kubeconfig, serving
from optimizer.cli.why import why
from optimizer.follow.overview.placement_answer import explained_request, placement_answer
from optimizer.plan.plan import Plan
from optimizer.service.optimizer import Optimizer
from optimizer.wire.explanation import Explanation
from tests.command_line import invoked_meanwhile
from tests.optimizer.build import NOW, request
from tests.optimizer.hubs import hub_of
from tests.optimizer.neighbours import planned
from tests.optimizer.test_solver_failures import nothing_starts


async def dsf_why(folder: Path, *arguments: str, applied: bool = False) -> tuple[int, str, str]:
    hub = await hub_of()
    if applied:
        service = Optimizer(hub, now=lambda: NOW)
        plan = await service.plan(request("power"))
        assert isinstance(plan, Plan)
        await service.apply(plan)
    async with serving(hub) as url:
        config = folder / "hub.kubeconfig"
        config.write_text(yaml.safe_dump(kubeconfig(url)), encoding="utf-8")
        return await invoked_meanwhile(why, f"--kubeconfig={config}", *arguments)


async def test_the_plan_in_force_is_explained(tmp_path: Path) -> None:
    code, out, err = await dsf_why(tmp_path, "app01", applied=True)
    assert (code, err) == (0, "")
    assert out.startswith("mwrs-app01 is on 2g.24gb of worker")


async def test_a_plan_made_now_is_told_from_where_a_workload_is(tmp_path: Path) -> None:
    asked = ("app01", "--objective=performance")
    found = [await dsf_why(tmp_path, *asked, *of, applied=True) for of in ((), ("worker01",))]
    for _, out, _ in found:
        assert re.match(
            r"mwrs-app01 is on 2g.24gb of worker0\d now; a plan made now has it on ", out
        )
    assert ": mwrs-app01 would be on 3g.48gb of worker0" in found[0][1]


async def test_why_not_elsewhere_for_an_objective(tmp_path: Path) -> None:
    code, out, err = await dsf_why(tmp_path, "app01", "worker02", "--objective=performance")
    assert (code, err) == (0, "")
    assert out.startswith(
        ("workload mwrs-app01 on cluster worker02", "mwrs-app01 would be on worker02")
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("app01",), "name the score to maximise; there is performance, power"),
        (("app03",), "no workload is named app03; near names: mwrs-app0"),
        (("app", "--objective=power"), "app is ambiguous; workloads that match: mwrs-app01"),
        (("app01", "nowhere", "--objective=power"), "no managed cluster is named nowhere"),
        (("app01", "--objective=power:x"), "x is no weight"),
    ],
)
async def test_what_is_not_there_is_told_with_what_is(
    tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    code, out, err = await dsf_why(tmp_path, *arguments)
    assert (code, out) == (1, "")
    assert said in err


@pytest.mark.parametrize("cluster", [(), ("worker02",)])
async def test_a_process_that_failed_is_told_beside_what_is_known(
    tmp_path: Path, cluster: tuple[str, ...]
) -> None:
    with nothing_starts():
        code, out, _ = await dsf_why(tmp_path, "app01", *cluster, "--objective=power")
    assert code == 0
    assert out.startswith(
        ("nothing was computed for mwrs-app01", "mwrs-app01 would be on worker02")
    )
    assert "; the solver failed: its process could not be started" in out
    assert "; the explanation failed: its process could not be started" in out


@pytest.mark.parametrize(
    ("policies", "said"),
    [
        (("3g.48gb-worker01",), "would be on worker01 in this plan"),
        ((), "on cluster worker01: cluster worker01 supplies no gpu"),
    ],
)
async def test_what_needs_no_solver_is_told_without_one(
    policies: tuple[str, ...], said: str
) -> None:
    clusters = [
        {"name": "worker01", "availablePolicies": [{"name": name} for name in policies]},
        {"name": "worker02", "availablePolicies": [{"name": "3g.48gb-worker02"}]},
    ]
    base = request(clusters=clusters, targetWorkloads=[{"name": "mwrs-app01"}])
    asked = explained_request(base, "mwrs-app01", "worker01")
    with nothing_starts():
        plan = await planned(await hub_of(), asked)
    assert said in placement_answer(plan, "mwrs-app01", "worker01").answer


async def test_why_nothing_was_computed_is_told_with_where_the_plan_has_a_workload() -> None:
    asked = explained_request(request("power"), "mwrs-app01", "worker01")
    plan = await planned(await hub_of(), asked)
    late = "everything: its process did not stop at its time limit"
    plan = replace(plan, explanation=Explanation(not_computed=(late,)))
    ((place, other),) = [
        (item.cluster, {"worker01": "worker02", "worker02": "worker01"}[item.cluster])
        for item in plan.placements
        if item.workload == "mwrs-app01"
    ]
    has = f"not computed: {late}; this plan has it on 2g.24gb of {place}"
    for cluster, on in ((other, f" on {other}"), ("", "")):
        answer = placement_answer(plan, "mwrs-app01", cluster).answer
        assert answer == f"nothing was computed for mwrs-app01{on}; {has}"
