"""Suggests a score dimension format: labels that all results have, and that tell them apart."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from dsf.api.crd.dynamic_scorer import DEFAULT_FORMAT
from dsf.api.scoring.dimension_format import DimensionFormat
from dsf.api.scoring.scoring_api import ScorerConfig

_DEFAULT = ("node", "namespace", "pod")
_NAMING = ("node", "namespace", "pod", "container", "app", "device")
_REMARK = ("meta",)
"""Used only if the others do not tell the results apart."""


OF_CLUSTER = "${scoreName}"
"""The format of one score for the whole cluster."""


def suggested_format(
    results: Iterable[Mapping[str, str]], further: Collection[str] = ()
) -> str | None:
    """Return a format that gives the labels of each result a name of its own; None without any.

    It is the default format if that suffices, or if there are no results. A single result without
    labels, one score for the whole cluster, has the name of the score. With others it has it too if
    that is a `further` format.
    """
    metrics = list(results)
    if OF_CLUSTER in further:
        metrics = [one for one in metrics if one.keys() & {*_NAMING, *_REMARK}] or metrics
    common = tuple(label for label in _NAMING if all(metric.get(label) for metric in metrics))
    for labels in (_DEFAULT, common, common + _REMARK):
        if labels and _distinct(metrics, labels):
            return DEFAULT_FORMAT if labels == _DEFAULT else _joined(labels)
    return OF_CLUSTER if len(metrics) == 1 else None


def _distinct(metrics: Iterable[Mapping[str, str]], labels: Sequence[str]) -> bool:
    """Tell whether all have all labels, and no two the same values."""
    names = [tuple(metric.get(label, "") for label in labels) for metric in metrics]
    return all(map(all, names)) and len(set(names)) == len(names)


def _joined(labels: Iterable[str]) -> str:
    return ";".join(f"${{{label}}}" for label in labels)


def further_formats(config: ScorerConfig, dimension_format: str) -> list[str]:
    """Return the format that names the entry of a config's default score, if it needs one."""
    default, form = config.scoring.default_score, DimensionFormat.parse(dimension_format)
    unnamed = default is not None and not default.entries
    return [OF_CLUSTER] if unnamed and isinstance(form, DimensionFormat) and form.named else []
