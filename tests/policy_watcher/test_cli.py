"""`dsf policy-watcher`: the contract's environment, and one line for what is wrong in it."""

import pytest
from click.testing import CliRunner

from policy_watcher.cli import policy_watcher

NO_HUB = {"KUBECONFIG": "/nonexistent/kubeconfig"}


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("POLL_INTERVAL_SEC", "soon", "whole number"),
        ("POLL_INTERVAL_SEC", "0", "at least 1"),
        ("POLL_INTERVAL_SEC", "1.5", "whole number"),
        ("POLL_INTERVAL_SEC", "٣", "whole number"),
        ("STABLE_DURATION_SEC", "-1", "at least 0"),
        ("TARGET_CLAIM_NAME", "Policy Claim", "lower case"),
        ("TARGET_CLAIM_NAME", "policy..claim", "lower case"),
        ("WATCH_NAMESPACE", "a/b", "lower case"),
    ],
)
def test_a_bad_setting_is_one_line_and_exit_2(name: str, value: str, told: str) -> None:
    result = CliRunner().invoke(policy_watcher, [], env={**NO_HUB, name: value})
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert name in line
    assert repr(value) in line
    assert told in line


@pytest.mark.parametrize(
    "env",
    [
        {"POLL_INTERVAL_SEC": "5", "STABLE_DURATION_SEC": "0", "WATCH_NAMESPACE": "worker01"},
        {"DSF_POLICY_WATCHER_POLL_INTERVAL_SEC": "5"},
        {},
    ],
)
def test_good_settings_get_as_far_as_the_cluster(env: dict[str, str]) -> None:
    result = CliRunner().invoke(
        policy_watcher, [], env={**NO_HUB, **env}, auto_envvar_prefix="DSF_POLICY_WATCHER"
    )
    assert result.exit_code == 1
    (line,) = result.stderr.splitlines()
    assert "/nonexistent/kubeconfig" in line


def test_flags_win_over_the_environment() -> None:
    result = CliRunner().invoke(
        policy_watcher, ["--poll-interval-sec", "7"], env={**NO_HUB, "POLL_INTERVAL_SEC": "x"}
    )
    assert result.exit_code == 1
