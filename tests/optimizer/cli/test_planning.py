"""`dsf plan`, `dsf diff` and `dsf optimize` against a hub over HTTP."""

import json
import re
import shlex
from pathlib import Path

import click
import pytest
import yaml
from click.testing import CliRunner

from dsf.kube import kinds
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.embedded.http.server import kubeconfig, serving
from optimizer.cli.planning import diff, optimize, plan
from tests.command_line import invoked, invoked_meanwhile
from tests.mcp_server.service import request as guide_request
from tests.optimizer.build import body
from tests.optimizer.cli.test_object_files import FOLDERS
from tests.optimizer.hubs import bound, hub_of, names
from tests.repository import ROOT

PAGE = (ROOT / "docs/how-to/plans.md").read_text(encoding="utf-8")
PERFORMANCE = ("--objective", "performance")


async def dsf(
    command: click.Command, hub: EmbeddedHub, folder: Path, *arguments: str
) -> tuple[int, str, str]:
    async with serving(hub) as url:
        config = folder / "hub.kubeconfig"
        config.write_text(yaml.safe_dump(kubeconfig(url)), encoding="utf-8")
        return await invoked_meanwhile(command, f"--kubeconfig={config}", *arguments)


async def test_a_plan_of_a_hub_is_applied_once_and_then_planned_again(tmp_path: Path) -> None:
    hub = await hub_of()
    picture = tmp_path / "plan.html"
    code, out, err = await dsf(plan, hub, tmp_path, *PERFORMANCE, f"--picture={picture}")
    assert code == 0
    assert out.startswith("Optimal: objective 115")
    assert err == f"Drew {picture}: open it in a browser.\n"
    assert '"action": "starts"' in picture.read_text()
    assert await names(hub, kinds.PLACEMENT) == []

    code, out, err = await dsf(diff, hub, tmp_path, *PERFORMANCE)
    assert (code, err) == (1, "")
    assert out.count("--- /dev/null\n+++ plan/placements.cluster") == 4
    assert await names(hub, kinds.PLACEMENT) == []

    code, out, err = await dsf(optimize, hub, tmp_path, *PERFORMANCE, "--yes")
    assert (code, err) == (0, "")
    assert "6 changes, recorded as PlacementPlan default-1; `dsf status --namespace`" in out
    assert await bound(hub) == {"3g.48gb-worker01", "3g.48gb-worker02"}
    record = await hub.get(kinds.PLACEMENT_PLAN, "default-1", "default")
    assert record["spec"]["requestedBy"] == "system:anonymous"

    assert await dsf(diff, hub, tmp_path) == (0, "", "")
    code, out, _ = await dsf(optimize, hub, tmp_path, "--yes")
    assert (code, out.splitlines()[-1]) == (0, "Nothing is to be written: the hub has this plan.")


async def test_an_objective_that_is_not_said_is_that_of_the_plan_in_force(tmp_path: Path) -> None:
    hub = await hub_of()
    await dsf(optimize, hub, tmp_path, "--objective=power", "--yes")
    code, out, err = await dsf(plan, hub, tmp_path, "--workload=app01")
    assert code == 0
    assert "No objective was said, so it is that of the plan in force: power x 1" in err
    assert "2g.24gb" in out


def test_an_aggregation_without_an_objective_is_refused() -> None:
    code, _, err = invoked(plan, "--aggregation=Mean")
    said = "--aggregation is of the scores of --objective: say that too"
    assert (code, err.splitlines()[-1]) == (2, f"Error: {said}")


async def test_a_plan_may_pretend_a_cluster_with_other_gpus(tmp_path: Path) -> None:
    (line,) = re.findall(r"^dsf plan (.*--what-if .*)$", PAGE, re.MULTILINE)
    asked = (*shlex.split(line), "--output=json")
    for code, out, err in (
        await dsf(plan, await hub_of(), tmp_path, *asked),
        await invoked_meanwhile(plan, *FOLDERS, *asked),
    ):
        assert code == 0, err
        assert "worker03" in {item["cluster"] for item in json.loads(out)["placements"]}
    for text, said in (("lose", "not valid JSON"), ('{"los": []}', "did you mean lose?")):
        code, out, err = await dsf(plan, await hub_of(), tmp_path, f"--what-if={text}")
        assert (code, out) == (2, "")
        assert said in err


async def test_nothing_is_applied_without_a_yes(tmp_path: Path) -> None:
    hub = await hub_of()
    code, out, err = await dsf(optimize, hub, tmp_path, *PERFORMANCE, "-o", "json")
    assert code == 1
    assert 'Stop 0, move 0, start 2 of 2 workloads on hub "http' in err
    assert 'namespace "default", optimization "default"?' in err
    assert "Objects: create 6." in err
    assert "Apply it? [y/N]" in err
    assert await names(hub, kinds.PLACEMENT) == []
    code, out, err = await dsf(optimize, hub, tmp_path, *PERFORMANCE, "--dry-run", "-o", "json")
    assert (code, json.loads(out)["objective_value"]) == (0, 115)
    assert await names(hub, kinds.PLACEMENT) == []


async def test_only_the_plan_with_the_expected_digest_is_applied(tmp_path: Path) -> None:
    hub = await hub_of()
    asked = (optimize, hub, tmp_path, *PERFORMANCE, "-o", "json")
    digest = json.loads((await dsf(*asked, "--dry-run"))[1])["digest"]
    for wrong in (digest[:12], "0" * 64):
        code, out, err = await dsf(*asked, "--yes", "--expected-digest", wrong)
        assert (code, out) == (1, "")
        assert "The plan is not the one that was shown" in err
    assert await names(hub, kinds.PLACEMENT) == []
    code, out, _ = await dsf(*asked, "--yes", "--expected-digest", digest)
    assert (code, json.loads(out)["applied"]) == (0, True)


async def test_a_diff_says_what_changes_in_an_object(tmp_path: Path) -> None:
    hub = await hub_of()
    await dsf(optimize, hub, tmp_path, *PERFORMANCE, "--yes")
    placement = (await names(hub, kinds.PLACEMENT))[0]
    await hub.patch(kinds.PLACEMENT, placement, {"spec": {"numberOfClusters": 2}}, "default")
    code, out, _ = await dsf(diff, hub, tmp_path)
    assert code == 1
    assert out.startswith(
        f"--- hub/placements.cluster.open-cluster-management.io/default/{placement}"
    )
    assert "-  numberOfClusters: 2\n+  numberOfClusters: 1\n" in out
    code, out, _ = await dsf(diff, hub, tmp_path, "-o", "yaml")
    (found,) = yaml.safe_load(out)
    assert (found["before"]["spec"]["numberOfClusters"], found["action"]) == (2, "patch")


@pytest.mark.parametrize("command", [plan, diff, optimize])
async def test_bad_questions_are_told(command: click.Command, tmp_path: Path) -> None:
    failed = 2 if command is diff else 1
    hub = await hub_of()
    code, out, err = await dsf(command, hub, tmp_path, "--objective", "nope")
    assert (code, out) == (failed, "")
    assert "no score is named nope; near names: power" in err
    code, _, err = await dsf(command, hub, tmp_path)
    assert code == failed
    assert "name the score to maximise; there is performance, power" in err
    body = tmp_path / "request.yaml"
    body.write_text("targetWorkloads: 3\n")
    code, _, err = await dsf(command, hub, tmp_path, f"--request={body}")
    assert code == failed
    assert "request.yaml: " in err
    both = ("--objective=power", f"--request={body}")
    code, _, err = await dsf(command, hub, tmp_path, *both)
    assert code == 2
    assert "--request says all" in err


def test_manifests_have_no_place_for_an_explanation() -> None:
    code, out, err = invoked(plan, *FOLDERS, "--objective=power", "--explain", "-o", "manifests")
    assert (code, out, "--explain: manifests have no place for it" in err) == (2, "", True)


def test_a_hub_that_is_gone_is_one_line() -> None:
    result = CliRunner().invoke(diff, ["--kubeconfig=/dev/null", "--objective=power"])
    assert (result.exit_code, result.stdout) == (2, "")
    assert len(result.stderr.splitlines()) == 1


def test_files_need_no_request_where_an_objective_is_said() -> None:
    code, out, _ = invoked(plan, *FOLDERS, "--objective", "performance")
    assert code == 0
    assert out.startswith("Optimal: objective 115")
    code, _, err = invoked(plan, *FOLDERS)
    assert code == 1
    assert "no request found" in err


def test_a_picture_is_an_html_file(tmp_path: Path) -> None:
    picture = tmp_path / "plan.svg"
    code, _, err = invoked(plan, *FOLDERS, "--objective=power", f"--picture={picture}")
    assert code == 2
    assert "must end in .html; write plan.html, for browsers" in err
    assert not picture.exists()


def test_a_picture_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    picture = tmp_path / "missing" / "plan.html"
    code, _, err = invoked(plan, *FOLDERS, "--objective=power", f"--picture={picture}")
    assert code == 1
    assert f"cannot write {picture}: No such file or directory" in err


def test_a_picture_without_a_policy_of_what_it_loads_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page that was built in part has no place for the policy."""
    page, picture = tmp_path / "index.html", tmp_path / "plan.html"
    page.write_text("<!doctype html><title>Cut")
    monkeypatch.setattr("optimizer.api.page_route.PAGE", page)
    code, _, err = invoked(plan, *FOLDERS, "--objective=power", f"--picture={picture}")
    assert code == 1
    assert "The page was not built: run `make page`" in err
    assert not picture.exists()


@pytest.mark.parametrize("command", [plan, diff, optimize])
async def test_what_a_request_file_says_otherwise_is_refused(
    command: click.Command, tmp_path: Path
) -> None:
    hub, file = await hub_of(), tmp_path / "request.yaml"
    file.write_text(yaml.safe_dump(body()))
    for option in ("namespace", "optimization"):
        words = (f"--request={file}", f"--{option}=other")
        code, out, err = await dsf(command, hub, tmp_path, *words)
        assert (code, out) == (2, "")
        assert f"--{option}: the request says default; leave one of them out" in err
    same = (f"--request={file}", "--namespace=default", "--optimization=default", "-o", "json")
    code, _, err = await dsf(command, hub, tmp_path, *same)
    assert (code, "leave one" in err) == (int(command is not plan), False)


async def test_a_request_file_that_says_dry_run_writes_nothing(tmp_path: Path) -> None:
    hub, file = await hub_of(), tmp_path / "request.yaml"
    file.write_text(yaml.safe_dump({**body(), "dryRun": True}))
    code, out, _ = await dsf(optimize, hub, tmp_path, f"--request={file}", "--yes")
    assert (code, out.splitlines()[-1]) == (0, "Dry run: nothing was written.")
    assert await names(hub, kinds.PLACEMENT) == []


def test_files_and_what_they_do_not_read_contradict_each_other(tmp_path: Path) -> None:
    file = tmp_path / "request.yaml"
    file.write_text(yaml.safe_dump(guide_request()))
    scenario = (*FOLDERS, f"-f{file}")
    for words, said in {
        ("--workload=app01",): "the files have a request, which says all",
        ("--namespace=other",): "--namespace: the request says default",
        ("--context=embedded",): "--filename is instead of a hub",
    }.items():
        code, out, err = invoked(plan, *scenario, *words)
        assert (code, out, said in err) == (2, "", True), err
    code, _, err = invoked(plan, *scenario, "--objective=performance")
    assert (code, "Ignored: the request in the files" in err) == (0, True)
    code, _, err = invoked(plan, *scenario, f"--request={file}")
    assert (code, "the request, because --request says which" in err) == (0, True)
