"""Generated Policies: the ConfigMap of layouts, the label that chooses one, and its confirmation.

Sources: https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/gpu-operator-mig.html
(labels, ConfigMap), and the CRDs of Policy and ConfigurationPolicy of governance-policy-propagator
and config-policy-controller, both at https://github.com/open-cluster-management-io/
"""

from collections.abc import Iterable, Sequence

from dsf.api.optimization import Optimization
from dsf.kube.kinds import POLICY
from dsf.kube.port import Object
from optimizer.domain.fleet import CandidatePolicy
from optimizer.domain.mig_manager_settings import GPU_OPERATOR, MigLabels
from optimizer.mig.mig_parted import config_file, config_name, node_config

CONFIGURATION_POLICY = "ConfigurationPolicy"


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
    return {
        "apiVersion": POLICY.api_version,
        "kind": POLICY.kind,
        "metadata": {
            "name": name,
            "namespace": owner.namespace,
            "labels": labels,
            **({"annotations": annotations} if annotations else {}),
        },
        "spec": spec,
    }


def _spec(candidate: CandidatePolicy, text: str, labels: MigLabels) -> Object:
    settings, wanted, done = (
        f"{candidate.policy}-{part}" for part in ("layouts", "wanted", "done")
    )
    file = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": labels.config_map, "namespace": labels.config_namespace},
        "data": {"config.yaml": text},
    }
    asked = [(item.node, {labels.wanted: config_name(item.gpus)}) for item in candidate.layouts]
    confirmed = [
        (item.node, {labels.wanted: config_name(item.gpus), labels.state: labels.done})
        for item in candidate.layouts
    ]
    return {
        "disabled": False,
        "policy-templates": [
            _template(settings, "enforce", [_musthave(file)]),
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
    template = _musthave({"apiVersion": "v1", "kind": "Node", "metadata": metadata})
    if name:
        return template
    return {**template, "objectSelector": {"matchLabels": {labels.present: "true"}}}


def _musthave(definition: Object) -> Object:
    return {"complianceType": "musthave", "objectDefinition": definition}


def _template(name: str, action: str, templates: Sequence[Object]) -> Object:
    return {
        "objectDefinition": {
            "apiVersion": POLICY.api_version,
            "kind": CONFIGURATION_POLICY,
            "metadata": {"name": name},
            "spec": {
                "remediationAction": action,
                "severity": "low",
                "object-templates": list(templates),
            },
        }
    }
