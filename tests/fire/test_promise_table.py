"""The table of `make fire` against a small suite of its own."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.repository import ROOT

SUITE = """
import pytest
from hypothesis import given, settings, strategies as st

@pytest.mark.fire("a race has one winner", "two writers")
@pytest.mark.parametrize("chunk", range(2))
def test_race(chunk, record_property):
    record_property("count", 50)
    assert chunk == 0

@pytest.mark.fire("any number is read", "random numbers")
@settings(max_examples=7, database=None, derandomize=True)
@given(st.integers())
def test_number(number):
    assert isinstance(number, int)

@pytest.mark.fire("ports are closed", "a list of ports", count=3)
def test_ports():
    assert True

def test_of_no_promise():
    assert True
"""
TABLE = """\
| promise | how it is tested | count | failures |
|---|---|---|---|
| a race has one winner | two writers | 100 | 1 |
| any number is read | random numbers | 7 | 0 |
| ports are closed | a list of ports | 3 | 0 |
"""


@pytest.mark.exhaustive
def test_a_row_sums_up_the_cases_and_failures_of_a_promise(tmp_path: Path) -> None:
    (tmp_path / "test_suite.py").write_text(SUITE)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = fire: a promise\n")
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "tests.fire.promise_table", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1
    assert TABLE in ran.stdout
