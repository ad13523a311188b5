"""`dsf doctor`, `dsf status` and `dsf diff` against a real API server and OCM's controllers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import yaml

from dsf.cli.root import root
from tests.command_line import invoked

from .harness.api import condition_of

if TYPE_CHECKING:
    from pathlib import Path

    from .harness.hub import Hub

pytestmark = pytest.mark.usefixtures("clusters", "placement_plans")


def test_an_administrator_is_told_what_is_installed_and_what_is_missing(hub: Hub) -> None:
    kubeconfig = f"--kubeconfig={hub.admin_kubeconfig}"
    code, out, _ = invoked(root, "doctor", kubeconfig, "--output=json")
    found = {item["check"]: item for item in json.loads(out)}
    fine = ("access", "clocks", "custom resources", "OCM", "rights")
    assert {name: found[name]["state"] for name in fine} == dict.fromkeys(fine, "ok"), out
    # Other tests leave clusters on this hub whose klusterlet never ran.
    known = hub.api.list("cluster.open-cluster-management.io/v1", "ManagedCluster")
    available = [condition_of(item, "ManagedClusterConditionAvailable") for item in known]
    usable = all(condition.get("status") == "True" for condition in available)
    assert found["managed clusters"]["state"] == ("ok" if usable else "warning"), out
    assert code == int(any(item["state"] == "failed" for item in found.values()))
    code, out, _ = invoked(root, "status", kubeconfig, "--output=json")
    assert code in (0, 1)
    assert json.loads(out)["ready_clusters"] >= 2
    code, _, err = invoked(root, "diff", kubeconfig, "--objective=no-such-score")
    assert code == 2
    assert "no-such-score" in err


def test_a_user_without_rights_and_a_wrong_token_are_told_what_to_do(
    hub: Hub, tmp_path: Path
) -> None:
    config = yaml.safe_load(hub.admin_kubeconfig.read_text())
    config["users"] = [{"name": config["users"][0]["name"], "user": {"token": "wrong"}}]
    wrong = tmp_path / "kubeconfig"
    wrong.write_text(yaml.safe_dump(config))
    for path, check, state, fix in (
        (hub.kubeconfig(user="visitor"), "rights", "warning", "ask for these rights"),
        (wrong, "access", "failed", "log in again"),
    ):
        code, out, err = invoked(root, "doctor", f"--kubeconfig={path}", "--output=json")
        found = {item["check"]: item for item in json.loads(out)}
        failed = any(item["state"] == "failed" for item in found.values())
        assert (code, err) == (int(failed), "")
        assert (found[check]["state"], fix in found[check]["fix"]) == (state, True), out
