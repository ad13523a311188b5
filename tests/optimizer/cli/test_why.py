"""`dsf why` against a hub over HTTP: the explanation of the MCP tool, in a terminal."""

from pathlib import Path

import pytest
import yaml

from dsf.kube.embedded.http.server import kubeconfig, serving
from optimizer.cli.why import why
from optimizer.plan.plan import Plan
from optimizer.service.optimizer import Optimizer
from tests.command_line import invoked_meanwhile
from tests.optimizer.build import NOW, request
from tests.optimizer.hubs import hub_of
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


async def test_why_not_elsewhere_for_an_objective(tmp_path: Path) -> None:
    code, out, err = await dsf_why(tmp_path, "app01", "worker02", "--objective=performance")
    assert (code, err) == (0, "")
    assert out.startswith(("workload mwrs-app01 on cluster worker02", "mwrs-app01 is on worker02"))


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
    assert out.startswith("nothing was computed for mwrs-app01")
    assert "; the solver failed: its process could not be started" in out
    assert "; the explanation failed: its process could not be started" in out
