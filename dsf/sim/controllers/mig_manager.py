"""A stand-in for the GPU operator's MIG manager: it makes the wanted profile the actual one.

The development guide mocks the operator's labels by `migsettinglabel` (wanted) and
`migresultlabel` ("true" when the configuration is ready); so does this.
"""

from dsf.kube.changes import Change, Patch
from dsf.kube.kinds import NODE
from dsf.kube.port import Object

SETTING_LABEL = "migsettinglabel"
RESULT_LABEL = "migresultlabel"
APPLIED_ANNOTATION = "dynamic-scoring.open-cluster-management.io/simulated-mig-config"


def start(node: Object) -> list[Change]:
    """Withdraw the result while a newly wanted profile is being configured."""
    labels, applied = _labels(node), _applied(node)
    wanted = labels.get(SETTING_LABEL)
    if wanted in {None, applied} or labels.get(RESULT_LABEL) == "false":
        return []
    return [_patch(node, {"labels": {RESULT_LABEL: "false"}})]


def finish(node: Object) -> list[Change]:
    """Report the wanted profile as configured."""
    wanted = _labels(node).get(SETTING_LABEL)
    if wanted is None or (wanted == _applied(node) and _labels(node).get(RESULT_LABEL) == "true"):
        return []
    return [
        _patch(
            node,
            {"labels": {RESULT_LABEL: "true"}, "annotations": {APPLIED_ANNOTATION: wanted}},
        )
    ]


def _labels(node: Object) -> dict[str, str]:
    return node["metadata"].get("labels") or {}


def _applied(node: Object) -> str | None:
    return (node["metadata"].get("annotations") or {}).get(APPLIED_ANNOTATION)


def _patch(node: Object, metadata: Object) -> Change:
    return Patch(NODE, node["metadata"]["name"], None, {"metadata": metadata})
