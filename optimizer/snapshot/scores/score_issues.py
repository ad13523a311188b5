"""What can't be used of a cluster's score, in words."""

from collections.abc import Iterable
from datetime import datetime

from dsf.api.names import HUB_NAMESPACE
from dsf.api.scoring.placement_scores import validity_of
from dsf.api.untrusted_text import UntrustedName, quoted
from dsf.kube.port import Object
from optimizer.domain.issue import Issue
from optimizer.snapshot.object_readers import name_of
from optimizer.snapshot.scores.entry_formats import ClaimedTwice, EntryFormats


def expired(obj: Object, cluster: str, now: datetime) -> Issue | None:
    """Return that a score is no longer valid; None if it is. `now` is aware."""
    if not validity_of(obj, now)[1]:
        return None
    until = (obj.get("status") or {}).get("validUntil")
    message = (
        f"cluster {cluster}: AddOnPlacementScore {name_of(obj)} was valid until"
        f" {UntrustedName(until)}"
    )
    return Issue(reason="ExpiredScore", message=message, cluster=cluster)


def wrong_format(formats: EntryFormats, cluster: str, entry: str) -> Issue:
    """Return that no entry of a score has any of the forms; `entry` is one of them."""
    advice = (
        f"; no DynamicScorer in namespace {HUB_NAMESPACE} says what it is, so name it in"
        " scoreDimensionFormat"
    )
    message = (
        f"cluster {cluster}: no entry of AddOnPlacementScore {formats.score} has the form"
        f" {_any_of(map(str, formats.formats))}; there is {quoted(entry)}"
        f"{advice if formats.guessed else ''}"
    )
    return Issue(reason="WrongScoreFormat", message=message, cluster=cluster)


def claimed_twice(found: ClaimedTwice, cluster: str, score: str) -> Issue:
    """Return that an entry has the forms of two formats."""
    first, second = (quoted(str(dimension)) for dimension in found.formats)
    message = (
        f"cluster {cluster}: entry {quoted(found.entry)} of AddOnPlacementScore {score} has both"
        f" forms {first} and {second}, so no entry of it counts there; name one of them in"
        " scoreDimensionFormat, or begin one of the scorer's formats with a word of its own"
    )
    return Issue(reason="AmbiguousEntry", message=message, cluster=cluster)


def entry_issue(reason: str, formats: EntryFormats, cluster: str, app: str, device: str) -> Issue:
    """Return that an app has no usable score on a device, with what was looked for."""
    labels = {"cluster": cluster, "app": app, "device": device}
    named = formats.stated
    wanted = dict.fromkeys(str(dimension.bound(labels)) for dimension in named)
    what = "no entry" if reason == "MissingScore" else "several entries"
    where = f"device {UntrustedName(device)}" if device else "a supply that names no device"
    less = ", or for a name that tells less" if formats.guessed else ""
    return Issue(
        reason=reason,
        message=f"cluster {cluster}: AddOnPlacementScore {formats.score} has {what} for app"
        f" {UntrustedName(app)} on {where} (looked for {_any_of(wanted)} in the form"
        f" {_any_of(map(str, named))}{less})",
        cluster=cluster,
        device=device,
    )


def further_issue(cluster: str, device: str, count: int) -> Issue:
    """Return how many more apps have no usable score on a device."""
    where = f"for device {UntrustedName(device)}" if device else "for a supply that names no device"
    return Issue(
        reason="MissingScore",
        message=f"cluster {cluster}: {count} more apps have no usable entry {where}",
        cluster=cluster,
        device=device,
    )


def _any_of(texts: Iterable[str]) -> str:
    return " or ".join(map(quoted, texts))
