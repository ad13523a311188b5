"""The command line as a user meets it: a process, its output, its exit code."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from dsf.api.crd.definitions import crds
from dsf.cli.root import COMMANDS, SECTIONS, root
from tests.command_line import invoked


def dsf(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "dsf", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"},
    )


def test_help_lists_every_command() -> None:
    answer = dsf("--help")
    assert answer.returncode == 0
    assert all(name in answer.stdout for name in COMMANDS)


def test_every_section_of_the_help_has_commands() -> None:
    assert {command.section for command in COMMANDS.values()} == set(SECTIONS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name: str) -> None:
    code, out, _ = invoked(root, name, "--help")
    assert code == 0
    assert out.startswith(f"Usage: dsf {name}")


def test_an_unknown_command_is_one_line_and_exit_code_2() -> None:
    answer = dsf("optimise")
    assert answer.returncode == 2
    assert "No such command 'optimise'" in answer.stderr
    assert "Traceback" not in answer.stderr


def test_crds_prints_what_kubectl_can_apply() -> None:
    answer = dsf("crds")
    assert list(yaml.safe_load_all(answer.stdout)) == crds()


def test_crds_prints_those_that_are_named() -> None:
    (printed,) = yaml.safe_load_all(dsf("crds", "placementplans").stdout)
    assert printed["spec"]["names"]["plural"] == "placementplans"
    unknown = dsf("crds", "plans")
    assert unknown.returncode == 2
    assert (
        "none of dynamicscorers, dynamicscoringconfigs, nodeinventories, placementplans, "
        "placementoptimizations" in unknown.stderr
    )


def test_crds_are_written_one_file_each(tmp_path: Path) -> None:
    answer = dsf("crds", "--output-dir", str(tmp_path / "new"))
    assert answer.returncode == 0
    written = {str(path) for path in (tmp_path / "new").iterdir()}
    assert written == set(answer.stdout.split())
    assert len(written) == len(crds())


def test_crds_that_cannot_be_written_are_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    answer = dsf("crds", "--output-dir", str(tmp_path / "file" / "new"))
    assert answer.returncode == 1
    assert answer.stderr == f"Error: cannot write to {tmp_path}/file/new: Not a directory\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_printed_for_the_shell(shell: str) -> None:
    answer = dsf("completion", shell)
    assert answer.returncode == 0
    assert "_DSF_COMPLETE" in answer.stdout


@pytest.mark.parametrize("command", ["scores", "controller", "optimizer", "mcp", "policy-watcher"])
def test_a_missing_kubeconfig_is_named_in_one_line(command: str) -> None:
    code, _, err = invoked(root, command, "--kubeconfig", "/nonexistent/hub.kubeconfig")
    assert code == 2
    assert "/nonexistent/hub.kubeconfig" in err
    assert "Traceback" not in err


def test_help_imports_no_heavy_module() -> None:
    code = (
        "import sys\nfrom dsf.cli.root import root\n"
        "from click.testing import CliRunner\n"
        "assert CliRunner().invoke(root, ['--help']).exit_code == 0\n"
        "heavy = {'pydantic', 'kubernetes', 'httpx', 'fastapi', 'pulp', 'fastmcp', 'asyncio'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == "[]"
