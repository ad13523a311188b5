"""`dsf doctor` against a hub over HTTP, and against none."""

import json
from pathlib import Path

import yaml

from dsf.kube.embedded.http.server import kubeconfig, serving
from optimizer.cli.status import doctor
from tests.command_line import invoked, invoked_meanwhile
from tests.optimizer.follow.hub_health.test_checks import installed_hub


async def test_each_check_is_a_line_and_a_failure_is_exit_code_1(tmp_path: Path) -> None:
    async with serving(await installed_hub()) as url:
        config = tmp_path / "hub.kubeconfig"
        config.write_text(yaml.safe_dump(kubeconfig(url)), encoding="utf-8")
        code, out, err = await invoked_meanwhile(doctor, f"--kubeconfig={config}")
        assert (code, err) == (0, "")
        assert out.startswith(f"ok        access             {url} answers")
        code, out, _ = await invoked_meanwhile(doctor, f"--kubeconfig={config}", "-n", "nope")
        assert code == 1
        assert "the hub has no namespace nope" in out
        assert "fix: name another one with --namespace" in out
        nobody = f"--prometheus-url={url}"
        code, out, _ = await invoked_meanwhile(
            doctor, f"--kubeconfig={config}", nobody, "--output=json"
        )
    assert code == 1
    (failed,) = (item for item in json.loads(out) if item["state"] == "failed")
    assert failed["check"] == "Prometheus"
    assert f"{url}/api/v1/query: HTTP 404" in failed["message"]


def test_no_hub_is_a_finding_with_a_fix(tmp_path: Path) -> None:
    config = tmp_path / "hub.kubeconfig"
    config.write_text(yaml.safe_dump(kubeconfig("http://127.0.0.1:9")), encoding="utf-8")
    code, out, err = invoked(doctor, f"--kubeconfig={config}")
    assert (code, err) == (1, "")
    state, name, *_ = out.split()
    assert (state, name) == ("failed", "access")
    assert "fix: name the hub's kubeconfig" in out
