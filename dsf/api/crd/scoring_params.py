"""What a scoring call says besides series: parameters, and the context that a scorer asks for."""

import math
import re
from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from dsf.api import name_syntax
from dsf.api.untrusted_text import UntrustedName
from dsf.api.wire_model import UnlessEmpty, UnlessNone, WireModel

ParamValue = str | int | float | bool

MOST_PARAMS = 32
"""Further parameters of one scorer: each call of every managed cluster carries them."""

LONGEST_PARAM = 1024
"""Characters of a parameter that is text."""

_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,62}")
_OWN_PARAMS = 2
_INT64 = range(-(2**63), 2**63)


class ScoringParams(WireModel):
    """The name of the score and the scoring interval; further parameters go to the scoring API."""

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra={
            "additionalProperties": {
                "type": ["string", "number", "boolean"],
                "maxLength": LONGEST_PARAM,
            },
            "maxProperties": MOST_PARAMS + _OWN_PARAMS,
        },
    )

    name: str | None = Field(
        None,
        max_length=253,
        pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$",
        description="Name of the score; the AddOnPlacementScore has it with '_' as '-'.",
    )
    interval: int | None = Field(
        None, ge=1, le=604_800, description="Seconds between two scorings."
    )

    @property
    def further(self) -> dict[str, ParamValue]:
        """The parameters that the scoring API gets, such as a model or a horizon."""
        return dict(self.__pydantic_extra__ or {})

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        if problem := params_problem(self.further):
            raise ValueError(problem)
        return self


def params_problem(params: Mapping[str, ParamValue]) -> str:
    """Return why a scoring API can't get these parameters; empty if it can."""
    if len(params) > MOST_PARAMS:
        return f"{len(params)} further parameters: give at most {MOST_PARAMS}"
    for key, value in params.items():
        if not _KEY.fullmatch(key):
            shown = UntrustedName(key[:LONGEST_PARAM])
            return f"parameter {shown}: a name has at most 63 letters, digits, '_', '.' and '-'"
        if problem := _problem(value):
            return f"parameter {key}: {problem}"
    return ""


def is_param(value: object) -> bool:
    """Tell whether a value has a type that a further parameter may have."""
    return isinstance(value, str | int | float)


def _problem(value: object) -> str:
    match value:
        case str():
            too_long = len(value) > LONGEST_PARAM
            return f"its text has more than {LONGEST_PARAM} characters" if too_long else ""
        case bool():
            return ""
        case int():
            return "" if value in _INT64 else "the number is too large"
        case float():
            return "" if math.isfinite(value) else "the number is not finite"
    return "give text, a number, true or false"


MOST_KEYS = 32
"""Labels or claims that one scorer may ask for: each is sent to every managed cluster."""

_LABEL_KEY = r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"
_CLAIM_NAME = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"
"""As released, wider than those of `name_syntax`: a CRD refuses nothing that it accepted."""

TemplateField = Literal[
    "replicas", "image", "requests", "limits", "nodeSelector", "runtimeClassName"
]
"""A field of a workload's templates that may be sent. Fields that may hold a secret, such as the
environment, arguments and annotations of a container, are not among them."""

_LabelKey = Annotated[str, Field(max_length=317, pattern=_LABEL_KEY)]
_ClaimName = Annotated[str, Field(max_length=name_syntax.DNS_SUBDOMAIN_LENGTH, pattern=_CLAIM_NAME)]
_Namespace = Annotated[
    str, Field(max_length=name_syntax.DNS_LABEL_LENGTH, pattern=name_syntax.DNS_LABEL)
]


class AskedWorkloads(WireModel):
    """The workloads to be scored: app, requests and priority of each ManifestWorkReplicaSet."""

    fields: UnlessEmpty[list[TemplateField]] = Field(
        default_factory=list,
        max_length=6,
        description="Fields of the workloads' templates that are sent as well. No other field"
        " is: never a Secret, the environment, the arguments or an annotation.",
    )


class AskedContext(WireModel):
    """What scoring calls tell a scorer about who asks, and about what is to be scored."""

    cluster: UnlessEmpty[bool] = Field(
        False,
        description="Send the names of the managed cluster, the score and the scorer in the"
        " body too; they are always in the headers.",
    )
    labels: UnlessEmpty[list[_LabelKey]] = Field(
        default_factory=list,
        max_length=MOST_KEYS,
        description="Keys of labels of the ManagedCluster whose values are sent.",
    )
    claims: UnlessEmpty[list[_ClaimName]] = Field(
        default_factory=list,
        max_length=MOST_KEYS,
        description="Names of ClusterClaims of the ManagedCluster whose values are sent.",
    )
    workloads: UnlessNone[AskedWorkloads] = Field(
        None,
        description="Send the workloads to be scored: the ManifestWorkReplicaSets with a label"
        " app, of the namespaces that the hub controller may read.",
    )
    devices: UnlessEmpty[bool] = Field(
        False,
        description="Send the devices that the policies with labels resource-supply-* would"
        " supply, of the namespaces that the hub controller may read.",
    )
    namespaces: UnlessEmpty[list[_Namespace]] = Field(
        default_factory=list,
        max_length=MOST_KEYS,
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
