"""Which entries of an AddOnPlacementScore count for which places, by the formats of their names.

What can't be used of a score is told in words.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from dsf.api.names import HUB_NAMESPACE, score_object_name
from dsf.api.scoring.dimension_format import DimensionFormat
from dsf.api.scoring.placement_scores import validity_of
from dsf.api.untrusted_text import UntrustedName, quoted
from dsf.kube.port import Object
from optimizer.domain.arrays import members_by_key
from optimizer.domain.issue import Issue, ScoreIssue
from optimizer.domain.score_matrix import CountedEntry
from optimizer.snapshot.object_readers import name_of
from optimizer.wire.request import Aggregation, ScoreRef

EntryKey = str | tuple[str, str]
"""The key of an entry: its name, or the app and device that its name contains."""

NamedValues = Mapping[str, int | None]
"""The values of one cluster's entries by name; None where several have the same name."""

_OF_PLACES = ("app", "device")
_OF_CLUSTERS = frozenset({"cluster", "scoreName"})
_NAMING = frozenset({"cluster", *_OF_PLACES})

_WORDS: dict[Aggregation, str] = {"Max": "the highest", "Min": "the lowest", "Mean": "the mean"}


def names_one_entry(dimension: DimensionFormat) -> bool:
    """Tell whether a format of `${cluster}`, `${app}` and `${device}` alone names one for a pair.

    With other placeholders, an entry belongs to the pairs that its name spells.
    """
    return _NAMING.issuperset(dimension.fields)


def key_of(dimension: DimensionFormat, cluster: str, app: str, device: str) -> EntryKey:
    """Return under which key the score of a pair is found."""
    if names_one_entry(dimension):
        return dimension.render({"cluster": cluster, "app": app, "device": device})
    fields = dimension.fields
    return app if "app" in fields else "", device if "device" in fields else ""


def by_precedence(formats: Sequence[DimensionFormat]) -> tuple[DimensionFormat, ...]:
    """Return formats in the order in which they count for a place that several of them score.

    The one that tells the most of app and device first, then the one that needs the least
    aggregation, then the one that was declared first.
    """

    def rank(dimension: DimensionFormat) -> tuple[int, int]:
        fields = set(dimension.fields)
        further = fields - _NAMING - _OF_CLUSTERS
        return -len(fields.intersection(_OF_PLACES)), len(further)

    return tuple(sorted(dict.fromkeys(formats), key=rank))


class ClaimedTwice(NamedTuple):
    """An entry that has the form of two formats, neither of which is more specific."""

    entry: str
    formats: tuple[DimensionFormat, DimensionFormat]


class FormatScores(NamedTuple):
    """The scores of one cluster in one format; None where several entries have one name.

    `counted`: which entry each is, unless the key is its name.
    """

    dimension: DimensionFormat
    values: Mapping[EntryKey, float | None]
    counted: Mapping[EntryKey, CountedEntry]

    def entry(self, key: EntryKey) -> CountedEntry:
        """Return which entry a score is."""
        return self.counted.get(key) or CountedEntry(self.dimension)


@dataclass(frozen=True, slots=True)
class EntryFormats:
    """How the entries of one score are read.

    `formats`: by precedence, at least one. `guessed`: neither the request nor a scorer states them.
    `aggregation`: of the entries that differ in what places do not have, such as the node.
    """

    score: str
    formats: tuple[DimensionFormat, ...]
    aggregation: Aggregation
    guessed: bool = False

    @property
    def stated(self) -> Sequence[DimensionFormat]:
        """The formats that somebody states; of guessed ones that of the wire contract."""
        return self.formats[:1] if self.guessed else self.formats

    def has_form(self, name: str) -> bool:
        """Tell whether an entry has the form of a stated format."""
        return any(dimension.match(name) is not None for dimension in self.stated)

    def read(
        self, cluster: str, entries: NamedValues, wanted: Sequence[Sequence[Sequence[EntryKey]]]
    ) -> tuple[FormatScores, ...] | ClaimedTwice:
        """Return the scores of a cluster in each format.

        `wanted`: for each format the keys of the scores that are asked for, device by device.
        """
        if len(self.formats) == 1:
            return (self._scores(cluster, entries, self.formats[0]),)
        shared = self._shared_out(cluster, entries, [set().union(*keys) for keys in wanted])
        if isinstance(shared, ClaimedTwice):
            return shared
        return tuple(
            self._scores(cluster, own, dimension)
            for own, dimension in zip(shared, self.formats, strict=True)
        )

    def _shared_out(
        self, cluster: str, entries: NamedValues, wanted: Sequence[set[EntryKey]]
    ) -> list[dict[str, int | None]] | ClaimedTwice:
        """Return the entries of each format."""
        shared: list[dict[str, int | None]] = [{} for _ in self.formats]
        foremost = self._most_specific()
        for name, value in entries.items():
            if foremost is not None and name in wanted[foremost]:
                shared[foremost][name] = value
                continue
            claims = list(self._claims(cluster, name, wanted))
            if len(claims) > 1:
                first, second = (self.formats[number] for number in sorted(claims)[:2])
                return ClaimedTwice(name, (first, second))
            for number in claims:
                shared[number][name] = value
        return shared

    def _most_specific(self) -> int | None:
        """Return the format, by number, that no other one contends with for what is asked of it."""
        ranks = list(map(_specificity, self.formats))
        return ranks.index(max(ranks)) if ranks.count(max(ranks)) == 1 else None

    def _claims(self, cluster: str, name: str, wanted: Sequence[set[EntryKey]]) -> Iterator[int]:
        """Yield the formats that claim an entry, by number: the most specific ones that it has.

        Of formats that name one entry for a pair, only those claim it that name it for a pair that
        is asked for, so that `${app}` and `${device}` do not contend for the name of an app.
        """
        has = [
            number
            for number, dimension in enumerate(self.formats)
            if self._labels(cluster, name, dimension) is not None
        ]
        exact = {number for number in has if names_one_entry(self.formats[number])}
        asked = {number for number in exact if name in wanted[number]}
        claiming = [number for number in has if not asked or number in asked or number not in exact]
        most = max((_specificity(self.formats[number]) for number in claiming), default=None)
        top = [number for number in claiming if _specificity(self.formats[number]) == most]
        yield from (top if asked or not exact.issuperset(top) else ())

    def _labels(
        self, cluster: str, name: str, dimension: DimensionFormat
    ) -> Mapping[str, str] | None:
        """Return the labels that an entry's name spells, if it speaks of this cluster and score."""
        labels = dimension.match(name)
        if labels is None or labels.get("cluster", cluster) != cluster:
            return None
        stated = labels.get("scoreName")
        return None if stated is not None and score_object_name(stated) != self.score else labels

    def _scores(
        self, cluster: str, entries: NamedValues, dimension: DimensionFormat
    ) -> FormatScores:
        if names_one_entry(dimension):
            return FormatScores(dimension, dict(entries.items()), {})
        spelt = ((name, self._labels(cluster, name, dimension)) for name in entries)
        groups = members_by_key(
            ((labels.get("app", ""), labels.get("device", "")), (name, labels))
            for name, labels in spelt
            if labels is not None
        )
        values: dict[EntryKey, float | None] = {}
        counted: dict[EntryKey, CountedEntry] = {}
        for key, members in groups.items():
            known = [value for name, _ in members if (value := entries[name]) is not None]
            if len(known) < len(members):
                values[key] = None
                continue
            values[key] = score = self._aggregated(known)
            labels = next((own for name, own in members if entries[name] == score), None)
            counted[key] = self._counted(dimension, labels, len(known))
        return FormatScores(dimension, values, counted)

    def _aggregated(self, values: Sequence[int]) -> float:
        match self.aggregation:
            case "Max":
                return max(values)
            case "Min":
                return min(values)
            case "Mean":
                return sum(values) / len(values)

    def _counted(
        self, dimension: DimensionFormat, labels: Mapping[str, str] | None, of: int
    ) -> CountedEntry:
        several = f" ({_WORDS[self.aggregation]} of {of})" if of > 1 else ""
        if labels is None or (several and self.aggregation == "Mean"):
            return CountedEntry(dimension, several)
        further = {name: text for name, text in labels.items() if name not in _NAMING}
        return CountedEntry(dimension.bound(further), several)


_GUESSES = ("${app};${device}", "${app}", "${device}", "${cluster}", "${scoreName}")
"""The formats of a score of which nobody states one."""


def formats_of(score: ScoreRef, declared: Mapping[str, Sequence[DimensionFormat]]) -> EntryFormats:
    """Return how a score is read: by the format of the request, or else those of its scorer.

    Of formats for several quantiles only the entries of the one that the request names are read.
    """
    stated = score.dimension
    formats = (stated,) if stated is not None else declared.get(score.score_name)
    guessed = map(DimensionFormat.parse, _GUESSES) if formats is None else formats
    parsed = [each for each in guessed if isinstance(each, DimensionFormat)]
    if score.at and (of_quantiles := list(filter(has_quantiles, parsed))):
        parsed = [each.bound({QUANTILE_LABEL: score.at}) for each in of_quantiles]
    return EntryFormats(
        score.score_name,
        by_precedence(parsed),
        score.aggregation or score.best_entry,
        guessed=formats is None,
    )


QUANTILE_LABEL = "meta"
"""The label of an entry that says which quantile of a forecast it is."""


def has_quantiles(dimension: DimensionFormat) -> bool:
    """Tell whether entries of a format may be those of several quantiles."""
    return QUANTILE_LABEL in dimension.fields


def _specificity(dimension: DimensionFormat) -> tuple[int, int, int]:
    """Return how much an entry's name tells by having a form: placeholders, known ones, text."""
    known = len(_OF_CLUSTERS.intersection(dimension.fields))
    return len(dimension.fields), known, sum(map(len, dimension.literals))


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
    return ScoreIssue(
        reason=reason,
        message=f"cluster {cluster}: AddOnPlacementScore {formats.score} has {what} for app"
        f" {UntrustedName(app)} on {where} (looked for {_any_of(wanted)} in the form"
        f" {_any_of(map(str, named))}{less})",
        cluster=cluster,
        device=device,
        app=app,
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
