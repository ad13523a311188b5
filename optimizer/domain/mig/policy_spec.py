"""Generated Policies: the ConfigMap of layouts, the label that chooses one, and its confirmation.

The layouts are a configuration of NVIDIA's mig-parted. The MIG manager of the GPU operator reads it
from a ConfigMap, key `config.yaml`, and applies to a node the configuration that the node's label
`nvidia.com/mig.config` names.

Sources: https://github.com/NVIDIA/mig-parted api/spec/v1/spec.go and examples/config.yaml,
https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/gpu-operator-mig.html
(labels, ConfigMap), and the CRDs of Policy and ConfigurationPolicy of governance-policy-propagator
and config-policy-controller, both at https://github.com/open-cluster-management-io/
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

import yaml

from dsf.api.optimization import Optimization
from dsf.kube.kinds import CONFIG_MAP, NODE, POLICY
from dsf.kube.port import Object
from optimizer.domain.arrays import members_by_key
from optimizer.domain.fleet import CandidatePolicy, ProfileCounts
from optimizer.domain.settings import GPU_OPERATOR, MigLabels

NodeConfig = list[dict[str, Any]]

ALL_DISABLED = "all-disabled"
_PREFIX = "dsf-"
_OFF, _EMPTY = "off", "empty"
LAYOUT_REGEX = r"off|empty|[0-9]{1,2}x[0-9a-z.]{1,32}(-[0-9]{1,2}x[0-9a-z.]{1,32}){0,7}"
"""What `layout_text` returns, as a regular expression."""

_LABEL_LIMIT = 63
"""Characters of a label value in Kubernetes."""


def node_config(gpus: Sequence[ProfileCounts | None]) -> NodeConfig:
    """Return the configuration that gives GPU i of a node the layout `gpus[i]`; None is MIG off."""
    alike = members_by_key((instances, index) for index, instances in enumerate(gpus))
    if len(alike) == 1:
        return [_entry("all", next(iter(alike)))]
    return [_entry(indices, instances) for instances, indices in alike.items()]


def config_name(gpus: Sequence[ProfileCounts | None]) -> str:
    """Return the name of `node_config(gpus)`, a label value that depends on the layouts alone.

    It spells the layouts if these fit into a label value; otherwise it ends with a digest.
    """
    if all(instances is None for instances in gpus):
        return ALL_DISABLED
    if len(set(gpus)) == 1:
        return _PREFIX + layout_text(gpus[0])
    runs = [(layout_text(item), len(list(run))) for item, run in groupby(gpus)]
    name = _PREFIX + "_".join(f"{length}.{text}" for text, length in runs)
    if len(name) <= _LABEL_LIMIT:
        return name
    digits = hashlib.sha256(json.dumps(gpus).encode()).hexdigest()[:16]
    return f"{_PREFIX}mixed-{digits}"


def config_file(configs: Mapping[str, NodeConfig]) -> str:
    """Return the text of a configuration file, which always contains ALL_DISABLED."""
    every = {ALL_DISABLED: [_entry("all", None)], **configs}
    listed = {"version": "v1", "mig-configs": {name: every[name] for name in sorted(every)}}
    return yaml.safe_dump(listed, sort_keys=False)


def layout_text(instances: ProfileCounts | None) -> str:
    """Return a layout as part of a label value: `2x1g.12gb-1x3g.48gb`, `off` without MIG."""
    if instances is None:
        return _OFF
    return "-".join(f"{amount}x{name.replace('+', '.')}" for name, amount in instances) or _EMPTY


def parse_layout(text: str) -> ProfileCounts | None:
    """Return the layout of a text that matches LAYOUT_REGEX; profiles have their device names."""
    if text == _OFF:
        return None
    parts = [item.partition("x") for item in text.split("-") if item != _EMPTY]
    return tuple((name, int(amount)) for amount, _, name in parts)


def _entry(devices: str | Iterable[int], instances: ProfileCounts | None) -> dict[str, Any]:
    numbers = devices if isinstance(devices, str) else list(devices)
    if instances is None:
        return {"devices": numbers, "mig-enabled": False}
    return {"devices": numbers, "mig-enabled": True, "mig-devices": dict(instances)}


CONFIGURATION_POLICY = "ConfigurationPolicy"
UNTIL_IT_HOLDS = {"noncompliant": "10s"}
"""How often a ConfigurationPolicy whose namespace may be missing is evaluated again.

The default, `watch`, waits forever when the namespace appears between the attempt to create an
object in it and the watch of it: config-policy-controller v0.19.0, `enforceByCreating`.
"""


def policy_specs(
    candidates: Sequence[CandidatePolicy], labels: MigLabels = GPU_OPERATOR
) -> list[Object]:
    """Return the spec of each Policy of one cluster.

    All carry the layouts of all of them: the MIG manager of a node reads one ConfigMap.
    """
    text = config_file(
        {
            config_name(layout.gpus): node_config(layout.gpus)
            for candidate in candidates
            for layout in candidate.layouts
        }
    )
    return [_spec(candidate, text, labels) for candidate in candidates]


def generated_policy(owner: Optimization, name: str, metadata: Object, spec: Object) -> Object:
    """Return a generated Policy; `metadata` holds further `labels` and `annotations`."""
    labels = {**owner.labels, **metadata.get("labels", {})}
    annotations = metadata.get("annotations")
    further = {"annotations": annotations} if annotations else {}
    header = {"name": name, "namespace": owner.namespace, "labels": labels, **further}
    return POLICY.object(metadata=header, spec=spec)


def _spec(candidate: CandidatePolicy, text: str, labels: MigLabels) -> Object:
    settings, wanted, done = (
        f"{candidate.policy}-{part}" for part in ("layouts", "wanted", "done")
    )
    file = CONFIG_MAP.object(
        metadata={"name": labels.config_map, "namespace": labels.config_namespace},
        data={"config.yaml": text},
    )
    asked = [(item.node, {labels.wanted: config_name(item.gpus)}) for item in candidate.layouts]
    confirmed = [
        (item.node, {labels.wanted: config_name(item.gpus), labels.state: labels.done})
        for item in candidate.layouts
    ]
    return {
        "disabled": False,
        "policy-templates": [
            _template(settings, "enforce", [_musthave(file)], UNTIL_IT_HOLDS),
            {
                **_template(wanted, "enforce", _nodes(asked, labels)),
                "extraDependencies": [
                    {
                        "apiVersion": POLICY.api_version,
                        "kind": CONFIGURATION_POLICY,
                        "name": settings,
                        "compliance": "Compliant",
                    }
                ],
            },
            _template(done, "inform", _nodes(confirmed, labels)),
        ],
    }


def _nodes(marked: Iterable[tuple[str, Object]], labels: MigLabels) -> list[Object]:
    return [_node(name, marks, labels) for name, marks in marked]


def _node(name: str, marks: Object, labels: MigLabels) -> Object:
    metadata = {"name": name, "labels": marks} if name else {"labels": marks}
    template = _musthave(NODE.object(metadata=metadata))
    if name:
        return template
    return {**template, "objectSelector": {"matchLabels": {labels.present: "true"}}}


def _musthave(definition: Object) -> Object:
    return {"complianceType": "musthave", "objectDefinition": definition}


def _template(
    name: str, action: str, templates: Sequence[Object], interval: Object | None = None
) -> Object:
    return {
        "objectDefinition": {
            "apiVersion": POLICY.api_version,
            "kind": CONFIGURATION_POLICY,
            "metadata": {"name": name},
            "spec": {
                "remediationAction": action,
                "severity": "low",
                **({"evaluationInterval": interval} if interval else {}),
                "object-templates": list(templates),
            },
        }
    }
