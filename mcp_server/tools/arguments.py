"""The types of the tools' arguments: validated in full, and described to a model in few words.

Every assistant pays for each schema in each conversation, so a schema states the type, what a model
can't guess, and an example; a wrong value is refused with the rest.
"""

from typing import Annotated, Any

from pydantic import Field, WithJsonSchema

from optimizer.follow.overview.constraints.constraint_fields import Constraints
from optimizer.follow.overview.constraints.constraint_fields import (
    Forgotten as ForgottenConstraints,
)
from optimizer.follow.overview.what_if import WhatIf
from optimizer.wire.request import Namespace as NamespaceName
from optimizer.wire.request import OptimizationName

MAX_ITEMS = 1000
"""Names in one list, and items that a page skips to or shows."""

_TEXT = {"type": "string"}
_NAMES = {"type": "array", "items": _TEXT}


def _text(description: str, *examples: str) -> WithJsonSchema:
    shown: dict[str, Any] = {"examples": list(examples)} if examples else {}
    return WithJsonSchema({**_TEXT, "description": description, **shown})


def _names(description: str) -> WithJsonSchema:
    return WithJsonSchema({**_NAMES, "description": description})


SearchedName = Annotated[str, Field(max_length=253)]

Namespace = Annotated[NamespaceName, _text("Of policies and workloads.")]
PlainNamespace = Annotated[NamespaceName, WithJsonSchema(_TEXT)]
PlannedNamespace = Annotated[NamespaceName, _text("Of policies and workloads; empty: default.")]
SeenNamespace = Annotated[NamespaceName, _text("Of policies and workloads.", "default")]
PastPlan = Annotated[SearchedName, _text("Revision or digest; default: that in force.")]
ShownObjects = Annotated[
    SearchedName,
    _text(
        "Objects as YAML: words of kind and name; plan: all of the plan.",
        "Placement app01",
        "NodeInventory worker01",
    ),
]
AsYaml = Annotated[bool, WithJsonSchema({"type": "boolean", "description": "Also as YAML."})]
Prove = Annotated[
    bool, WithJsonSchema({"type": "boolean", "description": "Plan again: is it best now?"})
]
Optimization = Annotated[OptimizationName, WithJsonSchema({**_TEXT, "examples": ["default"]})]
MeantOptimization = Annotated[
    OptimizationName | None,
    WithJsonSchema({**_TEXT, "description": "Default: the only one.", "examples": ["default"]}),
]
PlainOptimization = Annotated[OptimizationName | None, WithJsonSchema(_TEXT)]
Score = Annotated[SearchedName, _text("Name or part; empty: all.", "power")]
Cluster = Annotated[SearchedName, _text("Also list the entries of this cluster.", "worker01")]
OtherCluster = Annotated[SearchedName, _text("Why not there?", "worker02")]
Scorer = Annotated[SearchedName, _text("Scorer or score, or a part.", "power")]
Workload = Annotated[SearchedName, _text("Name or part.", "app01")]
AnyName = Annotated[SearchedName, _text("Any object, or part; empty: all.", "app01")]
KeptName = Annotated[SearchedName, _text("Name or part.", "inference")]
Kept = Annotated[SearchedName, _text("Name or part; empty: all.", "inference")]
Objective = Annotated[
    str,
    Field(max_length=2000),
    _text(
        "Scores to maximise, with weights. Default: those in force.",
        "power",
        "performance:2, power:1",
    ),
]
Objectives = Annotated[
    tuple[Annotated[str, Field(max_length=2000)], ...],
    Field(max_length=4),
    WithJsonSchema({**_NAMES, "examples": [["performance", "power"]]}),
]
Clusters = Annotated[tuple[SearchedName, ...], Field(max_length=MAX_ITEMS), _names("Default: all.")]
Workloads = Annotated[
    tuple[SearchedName, ...], Field(max_length=MAX_ITEMS), _names("Default: all.")
]
Digest = Annotated[str, Field(max_length=128), _text("Of a plan that was shown.")]
AppliedDigest = Annotated[
    str, Field(max_length=128), _text("Of a plan that was shown.", "18a4a3ec")
]
WaitingDigest = Annotated[
    str, Field(max_length=128), _text("`waiting` of kept_placements.", "8fa1bc06")
]
ResetDigest = Annotated[str, Field(max_length=128), _text("As a call without it shows.")]
Digests = Annotated[
    tuple[Annotated[str, Field(max_length=128)], ...],
    Field(max_length=4),
    _names("Plans that were shown."),
]
_NOTHING = Field(default_factory=WhatIf)
"""A default that no schema spells out."""

Question = Annotated[
    WhatIf,
    _NOTHING,
    WithJsonSchema(
        {
            "type": "object",
            "description": "Clusters lost, added (copies, or with other gpus); workloads that don't"
            " exist (run; on whole GPUs unless device or like); new policies; scores changed;"
            " budget: most of a score's sum; also apart, atLeast, atMost.",
            "examples": [
                {
                    "lose": ["worker02"],
                    "drain": ["worker01"],
                    "add": [
                        {
                            "name": "worker03",
                            "like": "worker01",
                            "gpus": [{"product": "H100-NVL", "count": 2}],
                        }
                    ],
                    "run": [{"amount": 4, "like": "app01"}],
                    "policies": [{"supplies": "gpu/3g.48gb=2"}],
                    "pin": {"app01": "worker03"},
                    "exclude": {"app02": ["worker01"]},
                    "together": [["app01", "app02"]],
                    "scores": [
                        {"score": "power", "cluster": "worker01", "entry": "2g", "value": 5}
                    ],
                    "budget": {"power": 100},
                }
            ],
        }
    ),
]
SameQuestion = Annotated[
    WhatIf, _NOTHING, WithJsonSchema({"type": "object", "description": "As of plan_placement."})
]
Remembered = Annotated[
    Constraints,
    Field(default_factory=Constraints),
    WithJsonSchema(
        {
            "type": "object",
            "description": "As in what_if; drain: {start, until}, or {schedule, duration,"
            " timeZone}.",
        }
    ),
]
Forgotten = Annotated[
    ForgottenConstraints,
    Field(default_factory=dict),
    WithJsonSchema({"type": "object", "examples": [{"worker01": ["drain"]}]}),
]
Request = Annotated[
    dict[str, Any],
    WithJsonSchema(
        {
            "type": "object",
            "description": "Fields of a request: optimization, gap, limits, mig, missingScore,"
            " rollout, or all.",
            "examples": [{"rollout": "Stepwise"}],
        }
    ),
]
Offset = Annotated[
    int, Field(default_factory=int, ge=0, le=10**9), WithJsonSchema({"type": "integer"})
]
Top = Annotated[
    int,
    Field(ge=1, le=50),
    WithJsonSchema({"type": "integer", "description": "Best and worst, 1..50."}),
]
Settings = Annotated[
    dict[Annotated[str, Field(max_length=200)], Annotated[str, Field(max_length=200)]],
    Field(max_length=5),
    WithJsonSchema(
        {
            "type": "object",
            "description": "Fields of its spec; empty: as it was.",
            "examples": [{"hysteresis.leastGainPercent": "5"}],
        }
    ),
]
Hours = Annotated[
    int, Field(ge=1, le=168), WithJsonSchema({"type": "integer", "description": "1..168."})
]
