"""A reader who types the guides line by line has at each step what it needs.

Nothing of them runs here. tests/real_hub/guides types them on a real hub; this test knows what that
one must stand in for: images, clusters that did not exist, charts of others, a reader's machine.
"""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from dsf import __version__
from tests.pages.guides import GUIDE, QUICKSTART, TUTORIALS, typed

from .clusters import Reader, after_clusters
from .findings import findings
from .typed_calls import typed_dry


def read(
    page: str, reader: Reader, folder: Path, texts: Mapping[str, str] | None = None
) -> list[str]:
    """Read a page dry; return what is wrong, each with its place."""
    dry = typed_dry(typed(page, texts), folder)
    found = [f"{place}: {said}" for place, said in findings(dry.calls, reader)]
    return [*found, *([": ".join(dry.stopped)] if dry.stopped else [])]


def test_who_begins_with_nothing_has_what_each_step_of_the_guide_needs(tmp_path: Path) -> None:
    assert read(GUIDE, Reader(), tmp_path) == []


def test_who_has_clusters_has_what_each_step_of_the_quickstart_needs(tmp_path: Path) -> None:
    assert read(QUICKSTART, after_clusters(), tmp_path) == []


@pytest.mark.parametrize("page", [GUIDE, QUICKSTART])
def test_no_command_has_a_comment(page: str) -> None:
    """Whoever types into zsh, which macOS has, would pass it on as words."""
    assert [item.place for item in typed(page) if re.search(r"\s#", item.text)] == []


MISTAKES = {
    "a variable that nothing sets": (
        GUIDE,
        r"HUB_TOKEN=.*\n",
        "",
        "for cluster in worker01 worker02; do\n  clusteradm join",
        "HUB_TOKEN: unbound variable",
    ),
    "a variable that is not exported": (
        QUICKSTART,
        "export NODE_IP=",
        "NODE_IP=",
        "envsubst '$NODE_IP'",
        "envsubst finds no variable NODE_IP",
    ),
    "envsubst that empties placeholders of the product": (
        QUICKSTART,
        r"envsubst '\$NODE_IP'",
        "envsubst",
        "envsubst < sample_scorers/sample/manifests/dynamicscorer.yaml",
        "envsubst finds no variable namespace",
    ),
    "a file that does not exist": (
        QUICKSTART,
        "dynamicscoringconfig.yaml",
        "dynamicscoringconfigs.yaml",
        "kubectl apply -f docs/examples/dynamicscoringconfigs.yaml",
        "there is no file docs/examples/dynamicscoringconfigs.yaml",
    ),
    "an image that no step builds": (
        GUIDE,
        'IMAGES="static-scorer simple',
        'IMAGES="simple',
        "make kind-load IMAGES=static-scorer",
        "static-scorer:{version} was not built",
    ),
    "an image on another cluster": (
        GUIDE,
        "simple-prediction-scorer CLUSTERS=worker02",
        "simple-prediction-scorer CLUSTERS=worker01",
        "CLUSTER_NAME=worker02 envsubst",
        "simple-prediction-scorer:{version} was not loaded into worker02",
    ),
    "a namespace that nobody makes": (
        GUIDE,
        r"--namespace policy-watcher \\\n  --create-namespace",
        "--namespace policy-watcher",
        "helm upgrade --install policy-watcher",
        "hub01 has no namespace policy-watcher",
    ),
    "a Secret on one cluster of two": (
        QUICKSTART,
        r"for cluster in worker01 worker02; do\n(.*api-auth-secret)",
        r"for cluster in worker01; do\n\1",
        ("envsubst '$EXTERNAL_SCORER_IP'"),
        "worker02 has no Secret api-auth-secret",
    ),
    "a kind before what brings it": (
        GUIDE,
        r"clusteradm install hub-addon.*\n",
        "",
        "kubectl apply -f dsf/sim/scenario/manifests",
        "hub01 does not know Policy, which the policy framework brings",
    ),
    "a misspelt kind": (
        GUIDE,
        "kubectl get clusterclaims",
        "kubectl get clusterclaimz",
        "kubectl get clusterclaimz",
        "nothing brings the kind clusterclaimz",
    ),
    "a step that does not wait": (
        QUICKSTART,
        r"kubectl wait pod/curl-tester.*\n",
        "",
        "kubectl exec curl-tester",
        "Pod curl-tester may not be ready",
    ),
    "a version that moves": (
        GUIDE,
        r"kind-hub01 --bundle-version=1\.2\.1",
        "kind-hub01 --bundle-version=latest",
        "clusteradm init",
        "pin the version of OCM",
    ),
    "a placeholder": (
        GUIDE,
        '"\\$HUB_TOKEN"',
        "TOKEN",
        "for cluster in worker01 worker02; do\n  clusteradm join",
        "a placeholder was left in place: TOKEN",
    ),
    "an address that only clusters reach": (
        QUICKSTART,
        r"kubectl exec curl-tester .* curl",
        "curl",
        "curl -sS http://$NODE_IP:30007",
        "ask from a Pod",
    ),
    "feature gates that are replaced": (
        GUIDE,
        r"kubectl get clustermanager(.|\n)*?kubectl replace -f -",
        "kubectl patch clustermanager cluster-manager --type merge -p '{}'",
        "kubectl patch clustermanager",
        "this replaces the feature gates",
    ),
    "a port that nothing forwards": (
        GUIDE,
        r"kubectl port-forward .*\n",
        "true\n",
        "curl -sS -X POST http://localhost:8338/optimize",
        "nothing answers on port 8338",
    ),
}
"""Page, what is replaced by what, the command at fault, and what is said of it."""


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_found_at_its_line(mistake: str, tmp_path: Path) -> None:
    page, old, new, at, said = MISTAKES[mistake]
    texts = {name: (TUTORIALS / name).read_text() for name in (GUIDE, QUICKSTART)}
    texts[page], count = re.subn(old, new, texts[page], count=1)
    assert count == 1
    where = page if at in texts[page] else GUIDE
    line = texts[where][: texts[where].index(at)].count("\n") + 1
    found = read(GUIDE, Reader(), tmp_path, texts)
    assert any(
        item.startswith(f"{where}:{line}: ") and said.format(version=__version__) in item
        for item in found
    ), found
