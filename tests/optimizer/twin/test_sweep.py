"""The processes in which runs are played."""

import subprocess
import sys

from tests.optimizer.twin.fleets import scenario

_KILLED = """
import os, signal, sys
from optimizer.twin.evaluation.sweep import Task, on_this_machine
from optimizer.twin.scenario import Scenario
fleet = Scenario.model_validate_json(sys.stdin.read())
for _ in on_this_machine(2)([Task(fleet, seed) for seed in range(4)]):
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_no_process_outlives_a_command_that_is_killed() -> None:
    """All of them hold the output, which ends with the last one."""
    killed = subprocess.run(
        [sys.executable, "-c", _KILLED],
        input=scenario(duration="10m", controller="Static").model_dump_json(by_alias=True),
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        env={"PYTHONPATH": ":".join(sys.path)},
        timeout=300,
    )
    assert killed.returncode == -9
