"""A stand-in for the GPU operator: it configures the MIG profile that a node asks for.

It uses the labels of the development guide: `migsettinglabel` names the requested profile, and
`migresultlabel` is "true" once the profile is configured. The real labels are
`nvidia.com/mig.config` and `nvidia.com/mig.config.state`. As its device plugin does, it advertises
the devices of the node's one GPU.

Source: https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/gpu-operator-mig.html
"""

from dsf.kube.changes import Change, Patch
from dsf.kube.kinds import NODE
from dsf.kube.port import Object

SETTING_LABEL = "migsettinglabel"
RESULT_LABEL = "migresultlabel"
APPLIED_ANNOTATION = "dynamic-scoring.open-cluster-management.io/simulated-mig-config"

GPU_RESOURCES = "nvidia.com/"
_DEVICES = {
    "all-disabled": {"nvidia.com/gpu": "1"},
    "3g.48gb": {"nvidia.com/mig-3g.48gb": "2"},
    "2g.24gb": {"nvidia.com/mig-2g.24gb": "3"},
}
"""What a GPU of 96 GB becomes, by the profile that the node asks for."""


def start(node: Object) -> list[Change]:
    """Set the result to "false" when a node asks for a profile that is not configured yet."""
    labels, applied = _labels(node), _applied(node)
    requested = labels.get(SETTING_LABEL)
    if requested in {None, applied} or labels.get(RESULT_LABEL) == "false":
        return []
    return [_patch(node, {"labels": {RESULT_LABEL: "false"}})]


def finish(node: Object) -> list[Change]:
    """Report the requested profile as configured, and advertise its devices."""
    requested = _labels(node).get(SETTING_LABEL)
    configured = requested == _applied(node) and _labels(node).get(RESULT_LABEL) == "true"
    if requested is None or configured:
        return []
    before = (node.get("status") or {}).get("allocatable") or {}
    devices = dict.fromkeys(name for name in before if name.startswith(GPU_RESOURCES))
    allocatable = {"allocatable": {**devices, **_DEVICES.get(requested, {})}}
    return [
        _patch(
            node, {"labels": {RESULT_LABEL: "true"}, "annotations": {APPLIED_ANNOTATION: requested}}
        ),
        Patch(NODE, node["metadata"]["name"], None, {"status": allocatable}, "status"),
    ]


def _labels(node: Object) -> dict[str, str]:
    return node["metadata"].get("labels") or {}


def _applied(node: Object) -> str | None:
    return (node["metadata"].get("annotations") or {}).get(APPLIED_ANNOTATION)


def _patch(node: Object, metadata: Object) -> Change:
    return Patch(NODE, node["metadata"]["name"], None, {"metadata": metadata})
