"""Taints of managed clusters, and the tolerations of Placements.

Source: plugins/tainttoleration of OCM's placement controller, v1.2.1, and
https://open-cluster-management.io/docs/concepts/content-placement/placement/#taintstolerations
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from dsf.api.times import read_time
from dsf.api.untrusted_text import UntrustedName, plain

UNREACHABLE = "cluster.open-cluster-management.io/unreachable"
"""Key of the taint of a cluster whose agent does not renew its lease."""

UNAVAILABLE = "cluster.open-cluster-management.io/unavailable"
"""Key of the taint of a cluster that reports that it is not available."""


class Taint(NamedTuple):
    """A taint, and since when the cluster has it; `added` is None if the cluster does not say."""

    key: str
    effect: str = "NoSelect"
    value: str = ""
    added: datetime | None = None

    def __str__(self) -> str:
        return f"{self.key}{f'={self.value}' if self.value else ''}:{self.effect}"


class Toleration(NamedTuple):
    """Which taints are tolerated; an empty key or effect stands for all of them.

    `operator`: Equal (the value must be the taint's) or Exists. `seconds`: for how long after the
    taint was added; None means without end.
    """

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""
    seconds: int | None = None

    def matches(self, taint: Taint) -> bool:
        """Return whether it is about this taint, however old that is."""
        return (
            self.effect in ("", taint.effect)
            and self.key in ("", taint.key)
            and (self.operator == "Exists" or self.value == taint.value)
        )

    def tolerates(self, taint: Taint, now: datetime) -> bool:
        """Return whether it tolerates a taint now. A taint without a time was added long ago."""
        if self.seconds is None or not self.matches(taint):
            return self.matches(taint)
        age = None if taint.added is None else (now - taint.added).total_seconds()
        return age is not None and age < self.seconds

    @property
    def manifest(self) -> Mapping[str, Any]:
        """The toleration as it stands in a Placement; fields with defaults are left out."""
        stated = {
            "key": plain(self.key),
            "operator": self.operator,
            "value": plain(self.value),
            "effect": self.effect,
            "tolerationSeconds": self.seconds,
        }
        return {name: value for name, value in stated.items() if value not in ("", None)}


def untolerated(
    taints: Iterable[Taint], tolerations: Iterable[Toleration], *, selected: bool, now: datetime
) -> Taint | None:
    """Return the first taint that keeps a Placement from selecting the cluster, or None.

    `selected`: the Placement selects the cluster now, which NoSelectIfNew exempts. PreferNoSelect
    never keeps a Placement from selecting a cluster.
    """
    known = tuple(tolerations)
    for taint in taints:
        exempt = taint.effect == "PreferNoSelect" or (taint.effect == "NoSelectIfNew" and selected)
        if not exempt and not tolerates(known, taint, now=now):
            return taint
    return None


def tolerates(tolerations: Iterable[Toleration], taint: Taint, *, now: datetime) -> bool:
    """Return whether any toleration tolerates a taint now."""
    return any(item.tolerates(taint, now) for item in tolerations)


def read_taints(cluster: Mapping[str, Any]) -> tuple[Taint, ...]:
    """Return the taints of a ManagedCluster."""
    return tuple(
        Taint(
            UntrustedName(item["key"]),
            item["effect"],
            UntrustedName(item.get("value") or ""),
            read_time(item.get("timeAdded")),
        )
        for item in (cluster.get("spec") or {}).get("taints") or ()
    )


def read_tolerations(spec: Mapping[str, Any]) -> tuple[Toleration, ...]:
    """Return the tolerations of the `spec` of a Placement."""
    return tuple(
        Toleration(
            item.get("key") or "",
            item.get("operator") or "Equal",
            item.get("value") or "",
            item.get("effect") or "",
            item.get("tolerationSeconds"),
        )
        for item in spec.get("tolerations") or ()
    )


def misconfigured(tolerations: Iterable[Toleration]) -> str:
    """Return what is wrong with tolerations, as OCM words it; empty if nothing is."""
    for item in tolerations:
        if not item.key and item.operator != "Exists":
            return "If the key is empty, operator must be Exists."
        if item.operator == "Exists" and item.value:
            return "If the operator is Exists, the value should be empty."
    return ""
