"""Writes docs/reference/tested-versions.md from what the suites pin.

Run `make references` after a change of a pin.
"""

import re
import tomllib
from collections.abc import Iterator

import yaml

from tests.repository import ROOT

PAGE = ROOT / "docs/reference/tested-versions.md"
REAL_HUB = "tests/real_hub/go.mod"
POLICY = "tests/real_hub/policy/go.mod"
ECOSYSTEM = "tests/real_hub/ecosystem/go.mod"
KUEUE = "tests/neighbours/kueue/go.mod"
COLLECTOR = "tests/real_sources/collector/go.mod"
DEBIAN = "tests/real_sources/programs.py"

_HEAD = """# Tested versions

A reference for people who ask whether the framework works with what they have, written by `make
references` from what the tests pin. Other versions may work, and nobody has tried. `dsf doctor`
shows the versions of a hub beside those here.
"""
_TAIL = """kind, Skupper, OpenShift and Grafana did not run in our tests, so no version of theirs is
here. The
[development guide](../tutorials/development-guide.md) pins those that its commands name. Debian 12
has Prometheus 2.42.
"""
MODULES = (
    ("Kubernetes (kube-apiserver)", "k8s.io/kubernetes", REAL_HUB, "runs"),
    ("etcd", "go.etcd.io/etcd/server/v3", REAL_HUB, "runs"),
    (
        "Open Cluster Management",
        "open-cluster-management.io/ocm",
        REAL_HUB,
        "its controllers and agents run, its operator does not",
    ),
    (
        "OCM's policy framework",
        "open-cluster-management.io/governance-policy-propagator",
        POLICY,
        "runs",
    ),
    ("helm", "helm.sh/helm/v3", REAL_HUB, "installs, upgrades and renders the charts"),
    ("OpenTelemetry collector", "go.opentelemetry.io/collector/otelcol", COLLECTOR, "runs"),
    ("Kueue", "sigs.k8s.io/kueue", KUEUE, "its manager runs on a hub and on worker clusters"),
    ("Kueue, the version before", "sigs.k8s.io/kueue", ECOSYSTEM, "only its schemas"),
    (
        "Argo CD",
        "github.com/argoproj/argo-cd/v3",
        "tests/neighbours/argocd/go.mod",
        "its ApplicationSet controller runs",
    ),
)
"""What it is, its Go module, the file that pins it, and what the tests do with it."""


def page() -> str:
    """Return the page."""
    return "\n".join((_HEAD, *_rows(), _TAIL))


def _rows() -> Iterator[str]:
    yield "| what | version | in our tests | pinned by |\n|---|---|---|---|"
    for what, module, file, does in MODULES:
        yield f"| {what} | {pinned(module, file)} | {does} | `{file}` |"
    for what in ("Prometheus", "VictoriaMetrics"):
        yield f"| {what} | that of Debian, or on PATH | runs | `{DEBIAN}` |"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    yield f"| Python | {project['requires-python']} | runs | `pyproject.toml` |"
    yield f"| Kubernetes of the charts | {charts()} | rendered | `charts/*/Chart.yaml` |"
    yield ""


def pinned(module: str, file: str) -> str:
    """The version of a module in a go.mod; raises ValueError if it is not there."""
    found = re.search(rf"^(?:require|\s)\s*{re.escape(module)} v(\S+)", _text(file), re.MULTILINE)
    if found is None:
        raise ValueError(f"{file} does not pin {module}")
    return found[1]


def charts() -> str:
    """The versions of Kubernetes that the charts accept, which are the same for all."""
    (accepted,) = {
        yaml.safe_load(path.read_text())["kubeVersion"] for path in ROOT.glob("charts/*/Chart.yaml")
    }
    return str(accepted).removesuffix("-0")


def _text(file: str) -> str:
    return (ROOT / file).read_text(encoding="utf-8")
