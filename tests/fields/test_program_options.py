"""Each option of a program that runs until it is stopped, and of the tools of authors, has a test.

They can't be asked without and with the option as `test_every_field` asks: the programs end at a
signal only, and the tools ask other servers than a hub. So this names the tests that prove each.
"""

import re
from collections.abc import Iterator

import click
import pytest

from dsf.cli.root import AUTHORS, COMMANDS, PROGRAMS, root
from tests.fields.commands import NO_QUESTION
from tests.repository import ROOT

OPTIMIZER = (
    "mcp_server/test_cli.py",
    "mcp_server/test_toolsets.py",
    "optimizer/cli/test_access_options.py",
    "optimizer/cli/test_commands.py",
    "optimizer/cli/test_http_server.py",
    "optimizer/cli/test_hub_connections.py",
    "optimizer/cli/test_mig.py",
    "optimizer/test_solver_failures.py",
    "browser/test_fleet.py",
)
KIT = (
    "dsf/scorer_kit/test_cli.py",
    "dsf/scorer_kit/test_trial.py",
    "dsf/scorer_kit/test_trial_context.py",
    "dsf/scorer_kit/test_registration.py",
    "dsf/scorer_kit/conformance/test_checks.py",
    "dsf/scorer_kit/backtest/test_cli.py",
)
TESTS: dict[str, tuple[str, ...]] = {
    "demo": (
        "dsf/sim/demo/test_authors_part.py",
        "dsf/sim/demo/test_demo.py",
        "dsf/sim/fleet/test_fleet.py",
        "dsf/sim/stories/test_stories.py",
        "release/test_files.py",
    ),
    "controller": (
        "dsf/hub/test_cli.py",
        "dsf/hub/test_run_manifests.py",
        "dsf/runtime/test_endpoints.py",
        "real_hub/product/test_restart.py",
    ),
    "dispatcher": ("dsf/hub/dispatch/test_cli.py", "neighbours/kueue_manager.py"),
    "agent": (
        "dsf/agent/test_cli.py",
        "dsf/agent/fetch/test_credentials.py",
        "dsf/agent/fetch/test_sources.py",
        "dsf/agent/inventory/test_cli.py",
        "dsf/agent/otlp/test_receiver.py",
        "real_hub/product/test_install.py",
        "real_sources/test_running.py",
    ),
    "optimizer": OPTIMIZER,
    "mcp": OPTIMIZER,
    "mcp install": ("mcp_server/install/test_cli.py",),
    "policy-watcher": ("policy_watcher/test_cli.py", "real_hub/harness/policy.py"),
    "mig": ("optimizer/cli/test_mig.py",),
    "simulate": ("optimizer/cli/test_simulate.py",),
    "top": ("optimizer/cli/top/test_top.py",),
    "scorer": (*KIT, "dsf/scorer_kit/test_new.py", "dsf/api/scoring/test_openapi.py"),
    "uninstall": ("dsf/hub/test_uninstall.py",),
    "crds": ("dsf/cli/test_root.py",),
    "completion": ("dsf/cli/test_root.py",),
}
"""Tests that give the options to the program, or to its `main`, by command or its first word."""

DSF_PLAN = ("fields/commands.py", "OBJECTS|FORMULATION|CHOICE")
PLANNED = {"--claim-name", "--cluster-label-key", "--prefer-no-select-cost", "--solver"}
PLANNED |= {"--default-toleration-seconds", "--pending-grace-seconds"}
PLANNED |= {"--plan-history-limit", "--record-key-secret"}
LIMITS = {"--max-streams", "--max-streams-per-caller"}
LIMITS |= {"--head-timeout", "--body-timeout", "--stalled-timeout"}
SETTINGS: dict[str, dict[str, tuple[str, str]]] = {
    "controller": {
        "--manifest-namespace": ("dsf/hub/test_run_manifests.py", "manifest_namespace"),
        "--distribute-secrets": ("dsf/hub/test_secrets_controller.py", "distribute_secrets"),
        "--writes-in-flight-minimum": ("dsf/kube/test_write_limiter.py", "in_flight"),
        "--writes-in-flight-maximum": ("dsf/kube/test_write_limiter.py", "in_flight"),
        "--write-latency-factor": ("dsf/kube/test_write_limiter.py", "latency_factor"),
        "--scorer-allowed-hosts": ("dsf/outbound/test_destinations.py", "allowed_hosts"),
        "--scorer-denied-hosts": ("dsf/outbound/test_destinations.py", "denied_hosts"),
    },
    "agent": {
        "--scorer-allowed-hosts": ("dsf/outbound/test_destinations.py", "allowed_hosts"),
        "--scorer-denied-hosts": ("dsf/outbound/test_destinations.py", "denied_hosts"),
        "--scorer-allowed-cidrs": ("dsf/hub/test_cli.py", "--scorer-allowed-cidrs"),
        "--scorer-denied-cidrs": ("dsf/hub/test_cli.py", "--scorer-denied-cidrs"),
    },
    "optimizer": {
        "--allowed-host": ("mcp_server/test_http.py", "allowed_hosts"),
        "--prometheus-url": ("optimizer/operations/test_score_history.py", "prometheus_url"),
        "--memory-limit": ("optimizer/test_solver_failures.py", "memory_mib"),
        **dict.fromkeys(LIMITS, ("optimizer/cli/test_http_server.py", "CONNECTION_OPTIONS")),
        "--when-client-cannot-ask": ("mcp_server/test_confirmation.py", "when_client_cannot_ask"),
        "--hub-name": ("mcp_server/test_strict_assistant.py", "hub_name"),
        **dict.fromkeys(PLANNED, DSF_PLAN),
    },
    "policy-watcher": {
        "--stable-duration-sec": ("policy_watcher/test_compliance.py", "stable_seconds")
    },
    "scorer backtest": {"--best": ("dsf/scorer_kit/backtest/test_figures.py", "best")},
}
"""Tests of the setting that an option fills, by the setting's name there."""

LOGS = {"--log-format", "--log-level"}
NOT_PROVEN: dict[str, set[str]] = {
    "controller": LOGS
    | {"--identity", "--leader-elect-resource-name", "--leader-elect-resource-namespace"}
    | {"--probe-period-seconds"},
    "dispatcher": LOGS,
    "agent": LOGS,
    "optimizer": {"--auth-audience", "--context", "--identity", "--log-format"}
    | {"--rollout-namespace"},
    "policy-watcher": LOGS
    | {"--context", "--kubeconfig", "--target-claim-name", "--watch-namespace"},
    "mig layouts": {"--all", "--media"},
    "scorer check": {"--scoring-url", "--time-limit"},
    "scorer try": {"--scoring-url"},
    "scorer backtest": {"--range", "--requests", "--scoring-url"},
    "scorer register": {"--scoring-url"},
    "simulate": {"--context", "--namespace", "--optimization"},
}
"""Options whose effect no quick test shows; `tests/charts` starts programs with those of charts."""


def programs() -> Iterator[tuple[str, click.Command]]:
    """The commands that `test_every_field` does not ask."""
    context = click.Context(root, info_name="dsf")
    for name, entry in COMMANDS.items():
        command = root.get_command(context, name)
        assert command is not None
        if entry.section in (PROGRAMS, AUTHORS) or name in NO_QUESTION:
            subs = command.commands if isinstance(command, click.Group) else {}
            yield from ((f"{name} {sub}", inner) for sub, inner in subs.items())
            if not subs:
                yield name, command


@pytest.mark.parametrize(("name", "command"), [pytest.param(*it, id=it[0]) for it in programs()])
def test_each_option_of_a_program_has_a_test(name: str, command: click.Command) -> None:
    files = TESTS.get(name) or TESTS[name.split(maxsplit=1)[0]]
    texts = "\n".join((ROOT / "tests" / file).read_text() for file in files)
    settings = SETTINGS.get(name, {})
    spellings = {
        item.opts[0]: "|".join((*item.opts, *item.secondary_opts))
        for item in command.params
        if isinstance(item, click.Option)
    }
    given = {
        option
        for option, words in spellings.items()
        if re.search(rf"(?<![\w-])({words})(?![\w-])", texts)
    }
    for option, (file, word) in settings.items():
        assert re.search(rf"{word}", (ROOT / "tests" / file).read_text()), (option, word)
    unproven = spellings.keys() - given - settings.keys()
    assert unproven == NOT_PROVEN.get(name, set())
    assert settings.keys() <= spellings.keys()
