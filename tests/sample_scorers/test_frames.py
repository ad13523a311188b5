"""No page of a scorer is shown in a frame, and every application of the repository is looked at."""

import ast
from collections.abc import Callable

import pytest
from fastapi import FastAPI

from sample_scorers.scoring_service.testing import client
from tests.repository import ROOT
from tests.sample_scorers.applications import APPS

APPLICATIONS = {
    "sample_scorers/scoring_service/application.py",
    "optimizer/api/app.py",  # tests/fire/test_frames.py
}


@pytest.mark.parametrize("path", ["/docs", "/redoc", "/docs/oauth2-redirect", "/nowhere"])
@pytest.mark.parametrize("app", APPS.values(), ids=APPS)
def test_no_page_of_a_sample_is_shown_in_a_frame(app: Callable[[str], FastAPI], path: str) -> None:
    with client(app("http://127.0.0.1:9/v1")) as http:
        answer = http.get(path, headers={"Accept": "text/html"})
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy


def test_every_application_is_looked_at() -> None:
    """A FastAPI serves /docs by itself."""
    packages = ("dsf", "mcp_server", "optimizer", "policy_watcher", "sample_scorers")
    made = {
        str(path.relative_to(ROOT))
        for package in packages
        for path in (ROOT / package).rglob("*.py")
        if path.name != "fake_model.py"
        for node in ast.walk(ast.parse(path.read_text()))
        if path.name != "fake_model.py"
        and isinstance(node, ast.Call)
        and ast.unparse(node.func).startswith("FastAPI")
    }
    assert made == APPLICATIONS
