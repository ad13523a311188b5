"""The pages that are written from the code are current, and name all that they should."""

import re
from types import ModuleType

import pytest

from dsf.api import names
from optimizer.follow.hub_health.hub_installation import KUBERNETES, OCM, OLDEST_KUBERNETES
from optimizer.follow.placement_status.landing_report import DRIFTED, LANDED
from optimizer.follow.record.plan_status import APPLIED, SUPERSEDED
from optimizer.follow.rollout.rollout_record import PROGRESSING
from tests.references.names import ANNOTATIONS, LABELS
from tests.references.pages import PAGES
from tests.references.tested_versions import REAL_HUB, charts, pinned
from tests.repository import ROOT


@pytest.mark.parametrize("module", PAGES, ids=lambda module: module.PAGE.name)
def test_a_page_is_current(module: ModuleType) -> None:
    assert module.PAGE.read_text(encoding="utf-8") == module.page(), "run: make references"


def test_no_label_or_annotation_is_missing() -> None:
    stated = {
        value
        for name, value in vars(names).items()
        if name.endswith(("_LABEL", "_ANNOTATION")) and isinstance(value, str)
    }
    assert stated <= LABELS.keys() | ANNOTATIONS.keys()


def test_no_condition_is_missing() -> None:
    page = (ROOT / "docs/reference/conditions-and-events.md").read_text()
    code = "".join(path.read_text() for path in (ROOT / "dsf/hub").rglob("*.py"))
    written = {*re.findall(r'\bCondition\(\s*"(\w+)"', code)}
    assert len(written) > 5
    written |= {APPLIED, SUPERSEDED, PROGRESSING, LANDED, DRIFTED}
    assert {name for name in written if f"`{name}`" not in page} == set()


def test_no_environment_variable_is_missing() -> None:
    """Every variable that the code reads by its name is on the page of the command line."""
    page = (ROOT / "docs/reference/command-line.md").read_text()
    packages = ("dsf", "optimizer", "mcp_server", "policy_watcher", "sample_scorers")
    code = [path.read_text() for name in packages for path in (ROOT / name).rglob("*.py")]
    read = r'environ(?:\.get\(|\[)\s*"(\w+)"|"(\w+)" in os\.environ|envvar="(\w+)"'
    found = {name for text in code for groups in re.findall(read, text) for name in groups if name}
    assert {"KUBECONFIG", "SCORING_TOKEN", "POLL_INTERVAL_SEC"} <= found
    assert {name for name in found if f"`{name}`" not in page} == set()


def test_doctor_names_the_tested_versions() -> None:
    assert pinned("k8s.io/kubernetes", REAL_HUB) == KUBERNETES
    assert pinned("open-cluster-management.io/ocm", REAL_HUB) == OCM
    assert charts() == ">=" + ".".join(map(str, OLDEST_KUBERNETES)) + ".0"


def test_the_guides_use_the_tested_versions() -> None:
    """A reader has what was tested, as far as a guide chooses."""
    guide = (ROOT / "docs/tutorials/development-guide.md").read_text()
    assert f"kindest/node:v{KUBERNETES}" in guide
    assert {*re.findall(r"--bundle-version[= ](\S+)", guide)} == {OCM}
