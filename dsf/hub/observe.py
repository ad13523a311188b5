"""From Kubernetes objects to what the controller keeps of them."""

import sys
from collections.abc import Callable, Mapping
from typing import Any

from dsf.api import names
from dsf.api.conditions import find
from dsf.hub.observed import CLUSTER_UNAVAILABLE, AddOn, Cluster, Object, Score, Trouble, Work
from dsf.hub.registration import is_leaving
from dsf.hub.work import manifest_work, summaries_text
from dsf.kube.changes import merge_patch

_STAGES = ("SourceFetched", "Scored", "Published")
_MESSAGE_LIMIT = 500
NO_RESULTS = "NoResults"
_NO_RESULTS_MESSAGE = (
    "the scoring API returned no results: does the query match anything on this cluster? Where"
    " there is nothing to score, mask the score"
)


def cluster(obj: Object) -> Cluster:
    """Read a ManagedCluster: cluster.open-cluster-management.io/v1."""
    labels = obj["metadata"].get("labels") or {}
    return Cluster(
        name=str(obj["metadata"]["name"]),
        accepted=bool((obj.get("spec") or {}).get("hubAcceptsClient")),
        leaving=is_leaving(obj),
        labels={sys.intern(str(key)): sys.intern(str(value)) for key, value in labels.items()},
        trouble=_unavailable(obj, "ManagedClusterConditionAvailable", CLUSTER_UNAVAILABLE),
    )


def add_on(obj: Object) -> AddOn:
    """Read a ManagedClusterAddOn: addon.open-cluster-management.io/v1alpha1."""
    return AddOn(is_leaving(obj), _unavailable(obj, "Available", "AddOnUnavailable"))


def work(agent_namespace: str) -> Callable[[Object], Work]:
    """Return how our ManifestWorks are read: work.open-cluster-management.io/v1."""

    def read(obj: Object) -> Work:
        text = sys.intern(summaries_text(obj))
        metadata = obj["metadata"]
        wanted = manifest_work(str(metadata["namespace"]), text, agent_namespace)
        return Work(
            text=text,
            uid=str(metadata.get("uid") or ""),
            version=str(metadata.get("resourceVersion") or ""),
            leaving=is_leaving(obj),
            drifted=obj if merge_patch(obj, wanted) else None,
            trouble=_not_applied(obj),
        )

    return read


def score(obj: Object) -> Score:
    """Read an AddOnPlacementScore: cluster.open-cluster-management.io/v1alpha1."""
    metadata, status = obj["metadata"], obj.get("status") or {}
    conditions = status.get("conditions") or []
    scored = find(conditions, "Scored")
    return Score(
        score_label=sys.intern(
            str((metadata.get("labels") or {}).get(names.SCORE_NAME_LABEL) or "")
        ),
        uid=str(metadata.get("uid") or ""),
        created=str(metadata.get("creationTimestamp") or ""),
        valid_until=str(status.get("validUntil") or ""),
        answered=bool(scored and scored.get("status") == "True"),
        trouble=next(
            filter(None, (_failed(find(conditions, stage)) for stage in _STAGES)), _empty(scored)
        ),
    )


def _empty(scored: Mapping[str, Any] | None) -> Trouble | None:
    """Return the trouble of a round that went well and gave nothing: a query may match nothing."""
    if scored is None or (scored.get("status"), scored.get("reason")) != ("True", NO_RESULTS):
        return None
    return _trouble(NO_RESULTS, {**scored, "message": _NO_RESULTS_MESSAGE})


def _failed(condition: Mapping[str, Any] | None) -> Trouble | None:
    if condition is None or condition.get("status") != "False":
        return None
    return _trouble(str(condition.get("reason") or condition.get("type")), condition)


def _unavailable(obj: Object, type_: str, reason: str) -> Trouble | None:
    """Return the trouble where a condition is there and not True: Unknown means out of touch."""
    condition = find((obj.get("status") or {}).get("conditions") or [], type_)
    if condition is None or condition.get("status") == "True":
        return None
    return _trouble(reason, condition)


def _not_applied(obj: Object) -> Trouble | None:
    condition = find((obj.get("status") or {}).get("conditions") or [], "Applied")
    if condition is None or condition.get("status") != "False":
        return None
    return _trouble("WorkNotApplied", condition)


def _trouble(reason: str, condition: Mapping[str, Any]) -> Trouble:
    message = str(condition.get("message") or condition.get("reason") or "")
    since = str(condition.get("lastTransitionTime") or "")
    return Trouble(sys.intern(reason), sys.intern(message[:_MESSAGE_LIMIT]), since)
