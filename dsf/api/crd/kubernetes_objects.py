"""Objects of a managed cluster's API server whose fields are samples: a source of series."""

from typing import Annotated

from pydantic import ConfigDict, Field

from dsf.api.crd.structural_schema import rule, rules
from dsf.api.wire_model import UnlessEmpty, UnlessNone, WireModel

MOST_FIELDS = 16
"""Samples of one object, and labels besides its name and namespace."""

_PATH = "JSONPath, such as .status.allocatable.cpu"
_METRIC, _LABEL = "^[a-zA-Z_:][a-zA-Z0-9_:]*$", "^[a-zA-Z][a-zA-Z0-9_]*$"
OWN_LABELS = ("name", "namespace")
"""Labels that every series has: with the name of the metric they tell each series apart."""

PathText = Annotated[str, Field(min_length=1, max_length=512)]


class KubernetesObjects(WireModel):
    """Objects of one resource, and the fields of them that are samples and labels."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                f"self.values.all(name, name.matches('{_METRIC}'))",
                "a name of values is that of a metric: letters, digits, _ and :",
                ".values",
            ),
            rule(
                f"!has(self.labels) || self.labels.all(name, name.matches('{_LABEL}')"
                f" && !(name in {list(OWN_LABELS)}))",
                "a name of labels has letters, digits and _, and is neither name nor namespace,"
                " which are always those of the object",
                ".labels",
            ),
        )
    )

    api_version: str = Field(
        max_length=317,
        pattern=r"^([a-z0-9]([a-z0-9.-]*[a-z0-9])?/)?v[a-z0-9]+$",
        description="Their apiVersion, such as v1 or metrics.k8s.io/v1beta1.",
    )
    resource: str = Field(
        max_length=63,
        pattern=r"^[a-z]([a-z0-9-]*[a-z0-9])?$",
        description="The plural name of their kind, as kubectl api-resources prints it.",
    )
    namespace: UnlessNone[str] = Field(
        None,
        max_length=63,
        pattern=r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$",
        description="Their namespace; all namespaces if it is missing.",
    )
    label_selector: UnlessNone[str] = Field(
        None,
        max_length=2048,
        description="Which of them, such as app=web, as kubectl's --selector.",
    )
    values: dict[str, PathText] = Field(
        min_length=1,
        max_length=MOST_FIELDS,
        description=f"Where a number is by the name of its metric: {_PATH}. Several numbers"
        " at a path are added up.",
    )
    labels: UnlessEmpty[dict[str, PathText]] = Field(
        default_factory=dict,
        max_length=MOST_FIELDS,
        description=f"Where labels are by their names: {_PATH}. A series always has the labels"
        " name and namespace.",
    )

    @property
    def api_group(self) -> str:
        """The API group; empty for the core group."""
        return self.api_version.rpartition("/")[0]

    @property
    def version(self) -> str:
        """The version within the API group."""
        return self.api_version.rpartition("/")[2]

    @property
    def qualified(self) -> str:
        """The resource with its group, such as `nodes.metrics.k8s.io`."""
        return f"{self.resource}.{self.api_group}" if self.api_group else self.resource
