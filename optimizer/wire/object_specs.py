"""Constraints and preferences of workloads, policies and clusters, besides their labels.

Each is a field of the request, and an annotation of the object that is named after the field
(`moveCost`: `dynamic-scoring.open-cluster-management.io/move-cost`). The request wins. Lists have a
short form for annotations; a request accepts it too.
"""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from dsf.api.scoring.quantity import parse_pairs, parse_quantity, parse_resource
from dsf.api.untrusted_text import InvalidInput, UntrustedText, quoted
from dsf.kube.selectors import label_selector
from dsf.placement import Toleration, misconfigured
from optimizer.domain.mig.policy_spec import LAYOUT_REGEX
from optimizer.domain.nodes import Packing
from optimizer.wire.base import Name, ObjectName, RequestPart
from optimizer.wire.time_windows import OptionalTimeWindow, Time

MAX_AMOUNT = 1e18
"""The largest quantity; a sum of many is still a finite float."""

MAX_NAMED_AMOUNTS = 20
"""Kinds or limits that one field may name: more than any workload has."""

_FIRST_ERROR_ONLY = Field(fail_fast=True)
"""Validation stops at the first wrong item. FailFast can't be used: unions need it hashable."""


def _short_form(read: Callable[[str], Any], full: Any) -> BeforeValidator:
    """Return a validator that reads a text; other values pass, as the `full` form in JSON."""

    def validated(value: Any) -> Any:
        return read(value) if isinstance(value, str) else value

    return BeforeValidator(validated, json_schema_input_type=full | str)


def _number(text: str) -> float:
    found = parse_quantity(text)
    if found is None:
        raise ValueError(f"{quoted(text, 40)} is no quantity such as 4, 500m or 16Gi")
    return found


def _named(value: Any) -> Any:
    if isinstance(value, Mapping) and len(value) > MAX_NAMED_AMOUNTS:
        raise ValueError(f"must list at most {MAX_NAMED_AMOUNTS}")
    return dict(_pairs(value, "cpu=4,memory=16Gi")) if isinstance(value, str) else value


def _supplies(text: str) -> list[dict[str, str]]:
    return [
        {"kind": kind, "device": device, "amount": amount}
        for name, amount in _pairs(text, "gpu/3g.48gb=1,cpu=8")
        for kind, device in [parse_resource(name)]
    ]


def _spreads(text: str) -> list[dict[str, str]]:
    return [{"key": key, "most": most} for key, most in _pairs(text, "topology/zone=1")]


def _pairs(text: str, example: str) -> list[tuple[str, str]]:
    found = parse_pairs(text)
    if found is None:
        raise ValueError(f"{quoted(text, 40)} does not have the form {example}")
    if len(dict(found)) < len(found):
        raise ValueError(f"{quoted(text, 40)} has a name twice")
    return found


def _selector(text: str) -> str:
    match label_selector(text):
        case InvalidInput(_, message):
            raise ValueError(message)
    return UntrustedText(text)


Quantity = Annotated[float, _short_form(_number, float), Field(ge=0, le=MAX_AMOUNT)]
Kind = Annotated[Name, Field(min_length=1, max_length=253)]
Amounts = Annotated[
    dict[Kind, Quantity],
    BeforeValidator(_named, json_schema_input_type=dict[str, float | str] | str),
    Field(max_length=MAX_NAMED_AMOUNTS),
]
Names = Annotated[
    tuple[ObjectName, ...],
    _FIRST_ERROR_ONLY,
    _short_form(lambda text: [name.strip() for name in text.split(",")], list[str]),
    Field(min_length=1, max_length=1000),
]
Selector = Annotated[str, Field(max_length=1024), AfterValidator(_selector)]


class TolerationSpec(RequestPart):
    """Which taints of managed clusters a generated Placement tolerates, as in OCM's Placement."""

    key: Annotated[
        Name, Field(max_length=316, description="Empty: every key.", examples=["gpu"])
    ] = ""
    operator: Literal["Equal", "Exists"] = Field(
        "Equal", description="Equal: the value has to be the taint's. Exists: any value."
    )
    value: Annotated[Name, Field(max_length=1024, description="The taint's value.")] = ""
    effect: Literal["", "NoSelect", "PreferNoSelect", "NoSelectIfNew"] = Field(
        "", description="Empty: every effect."
    )
    toleration_seconds: int | None = Field(
        None, ge=0, le=2**63 - 1, description="For so long after the taint came; else without end."
    )

    @model_validator(mode="after")
    def _as_ocm(self) -> Self:
        if wrong := misconfigured([self.toleration]):
            raise ValueError(wrong)
        return self

    @property
    def toleration(self) -> Toleration:
        """The toleration as a value of the fleet."""
        return Toleration(self.key, self.operator, self.value, self.effect, self.toleration_seconds)


_TOLERATION = re.compile(
    r"(?P<key>[^=:@,]*)(=(?P<value>[^=:@,]*))?(:(?P<effect>\w+))?(@(?P<s>\d+))?"
)


def _tolerations(text: str) -> list[dict[str, Any]]:
    """Read `key=value:Effect@seconds,...`, of which all but the key may be left out."""
    return [_toleration(part.strip()) for part in text.split(",")]


def _toleration(text: str) -> dict[str, Any]:
    found = _TOLERATION.fullmatch(text)
    if not found or not text:
        raise ValueError(f"{quoted(text, 40)} does not have the form key=value:NoSelect@300")
    return {
        "key": found["key"],
        "operator": "Exists" if found["value"] is None else "Equal",
        "value": found["value"] or "",
        "effect": found["effect"] or "",
        "tolerationSeconds": found["s"],
    }


Tolerations = Annotated[
    tuple[TolerationSpec, ...],
    _FIRST_ERROR_ONLY,
    _short_form(_tolerations, list[TolerationSpec]),
    Field(max_length=50),
]


class SupplySpec(RequestPart):
    """An amount of a device of a kind. Kinds without devices, such as cpu, have an empty device."""

    kind: Kind = Field(description="The kind, such as gpu or cpu.")
    device: Annotated[Name, Field(max_length=253, description="The device, such as 3g.48gb.")] = ""
    amount: Quantity = Field(description="How much of it, such as 4, 500m or 16Gi.")


Supplies = Annotated[
    tuple[SupplySpec, ...],
    _FIRST_ERROR_ONLY,
    _short_form(_supplies, list[SupplySpec]),
    Field(min_length=1, max_length=50),
]


class GpuLayoutSpec(RequestPart):
    """The layout of a GPU of a node: `2x3g.48gb`, `3x1g.12gb-1x4g.48gb`, or `off` for MIG off."""

    node: Annotated[
        Name, Field(max_length=253, description="Name of the node; empty: the only node with GPUs.")
    ] = ""
    gpu: int = Field(ge=0, lt=64, description="Index of the GPU on its node.", examples=[0])
    layout: str = Field(
        pattern=f"^({LAYOUT_REGEX})$",
        description="Its layout, such as 2x3g.48gb; off: no MIG.",
        examples=["2x3g.48gb"],
    )


def _layouts(text: str) -> list[dict[str, str]]:
    return [
        {"node": name.rpartition("/")[0], "gpu": name.rpartition("/")[2], "layout": layout}
        for name, layout in _pairs(text, "gpu-node-1/0=2x3g.48gb,gpu-node-1/1=off")
    ]


def _every_gpu(found: tuple[GpuLayoutSpec, ...]) -> tuple[GpuLayoutSpec, ...]:
    for node in dict.fromkeys(item.node for item in found):
        gpus = sorted(item.gpu for item in found if item.node == node)
        if gpus != list(range(len(gpus))):
            raise ValueError(f"{node or 'the node'}: name each of its GPUs once, from 0 on")
    return found


Layouts = Annotated[
    tuple[GpuLayoutSpec, ...],
    _FIRST_ERROR_ONLY,
    _short_form(_layouts, list[GpuLayoutSpec]),
    Field(min_length=1, max_length=1000),
    AfterValidator(_every_gpu),
]


class TopologySpreadSpec(RequestPart):
    """At most `most` replicas on clusters that have the same value of the label `key`."""

    key: Annotated[Name, Field(min_length=1, max_length=317, description="A label of clusters.")]
    most: int = Field(ge=1, le=100_000, description="The most replicas for each of its values.")


Spreads = Annotated[
    tuple[TopologySpreadSpec, ...],
    _FIRST_ERROR_ONLY,
    _short_form(_spreads, list[TopologySpreadSpec]),
    Field(max_length=10),
]


class WorkloadSpec(RequestPart):
    """Constraints and preferences of a workload."""

    replicas: int | None = Field(None, ge=1, le=20_000, description="Number of clusters to run on.")
    priority: int | None = Field(
        None, ge=-(2**31), le=2**31, description="A higher priority loses nothing to a lower one."
    )
    requests: Amounts | None = Field(
        None, description="Amounts of further kinds that each replica requests: cpu, memory, ..."
    )
    devices: Names | None = Field(
        default=None,
        description="The devices that it may run on, such as `all`; those of its Pods win.",
    )
    spread: Spreads | None = Field(
        None, description="The most replicas on clusters that have the same value of a label."
    )
    spread_group: Name | None = Field(
        None, max_length=253, description="Workloads of a group share the limits of their `spread`."
    )
    clusters: Names | None = Field(None, description="The clusters that it may run on; no others.")
    excluded_clusters: Names | None = Field(None, description="Clusters that it must not run on.")
    affinity: Selector | None = Field(
        None, description="Label selector that its clusters must match."
    )
    anti_affinity: Selector | None = Field(
        None, description="Label selector that its clusters must not match."
    )
    workload_affinity: Selector | None = Field(
        None, description="Label selector of workloads; one must run on the same cluster."
    )
    workload_anti_affinity: Selector | None = Field(
        None, description="Label selector of workloads; none may run on the same cluster."
    )
    apart_from: Names | None = Field(
        None, description="Workloads that must not run on the same cluster."
    )
    together_with: Names | None = Field(
        None, description="Workloads of which each must run on the same cluster."
    )
    minimum_score: float | None = Field(None, description="Least weighted score of an assignment.")
    move_cost: float | None = Field(
        None, ge=0, le=1e9, description="Cost of leaving a cluster where it runs now."
    )
    uses: Amounts | None = Field(
        None, description="Amounts by which each replica uses the limits of the request."
    )
    tolerations: Tolerations | None = Field(
        None, description="Taints of its clusters that it tolerates."
    )


class PolicySpec(RequestPart):
    """Pool, supplies, costs and layouts of a policy."""

    pool: Name | None = Field(
        None, max_length=63, description="At most one policy of a cluster's pool is enforced."
    )
    cluster: ObjectName | None = Field(
        None, description="The only cluster that may enforce the policy."
    )
    supplies: Supplies | None = Field(
        None, description="Amounts that the policy supplies. They replace those of its labels."
    )
    layouts: Layouts | None = Field(
        None, description="MIG layout of each GPU. GPUs with an unchanged layout keep running."
    )
    change_cost: float | None = Field(
        None,
        ge=0,
        le=1e9,
        description="Cost of enforcing it on a cluster that does not enforce it now.",
    )
    uses: Amounts | None = Field(
        None, description="Amounts by which it uses the limits of the request."
    )
    tolerations: Tolerations | None = Field(
        None, description="Taints of the cluster that it tolerates."
    )


class DrainSpec(OptionalTimeWindow):
    """When no workload may run on a cluster: always, within two times, in windows, or both."""

    start: Time | None = Field(None, description="Not before this time.")
    until: Time | None = Field(
        None, description="No longer than until this time.", examples=["2026-11-28T06:00:00Z"]
    )

    @model_validator(mode="after")
    def _lasts(self) -> Self:
        if self.start and self.until and self.start >= self.until:
            raise ValueError("until: must be later than start")
        return self

    def drained_until(self, now: datetime) -> datetime | None:
        """Return when the drain ends that holds at an aware time; None if none does.

        One without an end lasts until NO_END.
        """
        if (self.start and now < self.start) or (self.until and now >= self.until):
            return None
        end = self.window_end(now) if self.schedule else NO_END
        return end and min(end, self.until or NO_END)

    def never_ends(self, now: datetime) -> bool:
        """Return whether it has no end, or windows without a gap: as far as 50 of them tell."""
        if self.until:
            return False
        if not self.schedule:
            return True
        at: datetime | None = now if self.drained_until(now) else self.next_change(now)
        for _ in range(50):
            at = at and self.drained_until(at)
        return at is not None

    def next_change(self, now: datetime) -> datetime:
        """Return when it begins or ends next after an aware time; NO_END: never."""
        coming = self.drained_until(now) or (
            self.start if self.start and now < self.start else None
        )
        if coming is None and self.schedule and (self.until is None or now < self.until):
            coming = self.starts_of(self.schedule).next_start(now)
        return coming or NO_END


NO_END = datetime.max.replace(tzinfo=UTC)
"""When a drain ends that has no end."""

ALWAYS = "always"
"""The short form of a drain without times."""


def _drain(text: str) -> dict[str, str]:
    parts = [part.partition("=") for part in ([] if text == ALWAYS else text.split(";"))]
    if any(not sign for _, sign, _ in parts):
        form = "until=2026-11-28T06:00:00Z or schedule=0 22 * * *;duration=8h"
        raise ValueError(f"{quoted(text, 40)} does not have the form {ALWAYS}, {form}")
    found = {name.strip(): value.strip() for name, _, value in parts}
    if len(found) < len(parts):
        raise ValueError(f"{quoted(text, 40)} has a name twice")
    return found


Drain = Annotated[DrainSpec, _short_form(_drain, DrainSpec)]


class ClusterSpec(RequestPart):
    """What a managed cluster supplies without a policy, and what may run there."""

    allocatable: Supplies | None = Field(
        None, description="Amounts that it supplies without a policy. They replace its status."
    )
    capacity_source: Literal["Seen", "Stated"] | None = Field(
        None,
        description="Where the cluster has a NodeInventory. Seen, the default: supplies are what"
        " its nodes have left, and what is stated beyond that does not count. Stated: the inventory"
        " is not used.",
    )
    drain: Drain | None = Field(
        None, description="When no workload may run on it; what runs there leaves."
    )
    max_workloads: int | None = Field(
        None, ge=0, le=100_000, description="The most workloads that may run on it."
    )
    packing: Packing | None = Field(
        None,
        description="Where its nodes are known: AnyOrder (default) plans Pods that start on"
        " whatever nodes its scheduler takes; BestFit those that start if the largest come first.",
    )
