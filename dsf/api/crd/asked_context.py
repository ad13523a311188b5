"""The context that a scorer asks for: what scoring calls tell it besides series."""

from typing import Annotated, Literal

from pydantic import Field

from dsf.api.wire_model import WireModel

MOST_KEYS = 32
"""Labels or claims that one scorer may ask for: each is sent to every managed cluster."""

_LABEL_KEY = r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"
"""Source: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#syntax-and-character-set"""
_LABEL_KEY_LENGTH = 317
_DNS_SUBDOMAIN = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"
_DNS_SUBDOMAIN_LENGTH = 253
_NAMESPACE = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
_NAMESPACE_LENGTH = 63

TemplateField = Literal[
    "replicas", "image", "requests", "limits", "nodeSelector", "runtimeClassName"
]
"""A field of a workload's templates that may be sent. Fields that may hold a secret, such as the
environment, arguments and annotations of a container, are not among them."""

_LabelKey = Annotated[str, Field(max_length=_LABEL_KEY_LENGTH, pattern=_LABEL_KEY)]
_ClaimName = Annotated[str, Field(max_length=_DNS_SUBDOMAIN_LENGTH, pattern=_DNS_SUBDOMAIN)]
_Namespace = Annotated[str, Field(max_length=_NAMESPACE_LENGTH, pattern=_NAMESPACE)]


def _absent(value: object) -> bool:
    return not value


class AskedWorkloads(WireModel):
    """The workloads to be scored: app, requests and priority of each ManifestWorkReplicaSet."""

    fields: list[TemplateField] = Field(
        default_factory=list,
        max_length=6,
        exclude_if=_absent,
        description="Fields of the workloads' templates that are sent as well. No other field"
        " is: never a Secret, the environment, the arguments or an annotation.",
    )


class AskedContext(WireModel):
    """What scoring calls tell a scorer about who asks, and about what is to be scored."""

    cluster: bool = Field(
        False,
        exclude_if=_absent,
        description="Send the names of the managed cluster, the score and the scorer in the"
        " body too; they are always in the headers.",
    )
    labels: list[_LabelKey] = Field(
        default_factory=list,
        max_length=MOST_KEYS,
        exclude_if=_absent,
        description="Keys of labels of the ManagedCluster whose values are sent.",
    )
    claims: list[_ClaimName] = Field(
        default_factory=list,
        max_length=MOST_KEYS,
        exclude_if=_absent,
        description="Names of ClusterClaims of the ManagedCluster whose values are sent.",
    )
    workloads: AskedWorkloads | None = Field(
        None,
        exclude_if=lambda value: value is None,
        description="Send the workloads to be scored: the ManifestWorkReplicaSets with a label"
        " app, of the namespaces that the hub controller may read.",
    )
    devices: bool = Field(
        False,
        exclude_if=_absent,
        description="Send the devices that the policies with labels resource-supply-* would"
        " supply, of the namespaces that the hub controller may read.",
    )
    namespaces: list[_Namespace] = Field(
        default_factory=list,
        max_length=MOST_KEYS,
        exclude_if=_absent,
        description="Namespaces of the workloads and policies; all that the hub controller may"
        " read if it is empty.",
    )

    @property
    def from_manifests(self) -> bool:
        """Whether the hub has to read workloads or policies for it."""
        return self.workloads is not None or self.devices

    def __str__(self) -> str:
        return self.model_dump_json(by_alias=True)


DeclaredContext = Annotated[
    AskedContext | None,
    Field(
        default=None,
        description="What scoring calls say besides series: who asks, and what is to be"
        " scored. Without it the body has only series.",
    ),
]
"""The field `context` of a DynamicScorer and of `/config`."""
