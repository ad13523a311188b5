"""The context of a scoring call: who asks, and what is to be scored besides series."""

from typing import Annotated

from pydantic import Field

from dsf.api.wire_model import WireModel

CLUSTER_HEADER = "Dynamic-Scoring-Cluster"
SCORE_HEADER = "Dynamic-Scoring-Score"
SCORER_HEADER = "Dynamic-Scoring-Scorer"
"""Headers of every call of an agent: names of the managed cluster, the score, the DynamicScorer."""


def _missing(value: object) -> bool:
    return value is None


Amounts = Annotated[
    dict[str, str], Field(description="Amounts by kind, as Kubernetes writes quantities.")
]


class TemplateContainer(WireModel):
    """A container of a workload's template, with the fields that the config asks for."""

    name: str
    image: str | None = Field(None, exclude_if=_missing)
    requests: Amounts | None = Field(None, exclude_if=_missing)
    limits: Amounts | None = Field(None, exclude_if=_missing)


class WorkloadTemplate(WireModel):
    """An object of a ManifestWorkReplicaSet that makes pods, such as a Deployment."""

    kind: str
    name: str
    replicas: int | None = Field(None, exclude_if=_missing)
    node_selector: dict[str, str] | None = Field(None, exclude_if=_missing)
    runtime_class_name: str | None = Field(None, exclude_if=_missing)
    containers: list[TemplateContainer] = Field(
        default_factory=list, exclude_if=lambda value: not value
    )


class ScoredWorkload(WireModel):
    """A ManifestWorkReplicaSet with a label app: a workload to be scored."""

    namespace: str
    name: str
    app: str = Field(description="Its label app: the `app` of its scores.")
    requests: Amounts = Field(
        description="What each replica requests, by its labels and annotation."
    )
    priority: int = Field(0, description="Its priority for the optimizer.")
    templates: list[WorkloadTemplate] = Field(
        default_factory=list,
        exclude_if=lambda value: not value,
        description="The chosen fields of the objects that it makes pods of.",
    )


class SuppliedDevice(WireModel):
    """A device that a policy would supply to a cluster that enforces it."""

    namespace: str
    policy: str
    kind: str
    device: str = Field(description="The `device` of its scores.")
    amount: str


class RequestContext(WireModel):
    """What a scorer's config asks for in `context`; each part only if it is asked for."""

    cluster: str | None = Field(
        None, exclude_if=_missing, description="Name of the managed cluster."
    )
    score: str | None = Field(None, exclude_if=_missing, description="Name of the score.")
    scorer: str | None = Field(None, exclude_if=_missing, description="Name of the DynamicScorer.")
    labels: dict[str, str] | None = Field(
        None,
        exclude_if=_missing,
        description="The labels of the ManagedCluster that it has of those asked for.",
    )
    claims: dict[str, str] | None = Field(
        None,
        exclude_if=_missing,
        description="The ClusterClaims of the ManagedCluster that it has of those asked for.",
    )
    workloads: list[ScoredWorkload] | None = Field(None, exclude_if=_missing)
    devices: list[SuppliedDevice] | None = Field(None, exclude_if=_missing)
