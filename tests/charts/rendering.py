"""The objects that helm renders from a chart, and those inside its AddOnTemplate."""

import subprocess
from pathlib import Path
from typing import Any

import yaml

from tests.charts.programs import program
from tests.charts.toggles import Values
from tests.repository import ROOT

CHARTS = ROOT / "charts"
CLUSTER = "east"

Object = dict[str, Any]


def render(
    chart: str,
    values: Values,
    *,
    release: str = "",
    namespace: str = "dsf",
    source: Path | None = None,
) -> list[Object]:
    """The objects of a release that is not installed; raises ValueError with helm's message.

    `source` is the chart's folder or package, by default that of today.
    """
    text = manifests(chart, values, release=release, namespace=namespace, source=source)
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return [obj for obj in yaml.load_all(text, Loader=loader) if obj]


def manifests(
    chart: str,
    values: Values,
    *,
    release: str = "",
    namespace: str = "dsf",
    source: Path | None = None,
) -> str:
    """As `render`, but the text that helm prints."""
    source = source or CHARTS / chart
    words = ["template", release or chart, str(source), "--kube-version=1.30"]
    ended = subprocess.run(
        [program("helm"), *words, f"--namespace={namespace}", "--values=-"],
        input=yaml.safe_dump(values),
        capture_output=True,
        text=True,
        check=False,
    )
    if ended.returncode:
        raise ValueError(ended.stderr)
    return ended.stdout


def expanded(objects: list[Object]) -> list[Object]:
    """Objects, and those that OCM makes of the AddOnTemplates among them for one cluster."""
    inside = [
        manifest
        for obj in objects
        if obj["kind"] == "AddOnTemplate"
        for manifest in obj["spec"]["agentSpec"]["workload"]["manifests"]
    ]
    text = yaml.safe_dump(inside).replace("{{CLUSTER_NAME}}", CLUSTER)
    return objects + list(yaml.safe_load(text.replace("{{HUB_KUBECONFIG}}", "/hub/kubeconfig")))


def pod_spec(obj: Object) -> Object | None:
    """The spec of the Pods that an object makes, or None."""
    if obj["kind"] == "Pod":
        return dict(obj["spec"])
    return dict(obj["spec"]["template"]["spec"]) if obj["kind"] == "Deployment" else None
