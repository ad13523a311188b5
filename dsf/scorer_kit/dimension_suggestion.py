"""Suggests a score dimension format: labels that all results have, and that tell them apart."""

from collections.abc import Iterable, Mapping, Sequence

from dsf.api.crd.dynamic_scorer import DEFAULT_FORMAT

_DEFAULT = ("node", "namespace", "pod")
_NAMING = ("node", "namespace", "pod", "container", "app", "device")
_REMARK = ("meta",)
"""Used only if the others do not tell the results apart."""


def suggested_format(results: Iterable[Mapping[str, str]]) -> str | None:
    """Return a format that gives the labels of each result a name of its own; None without any.

    It is the default format if that suffices, or if there are no results. A single result without
    labels, one score for the whole cluster, has the name of the score.
    """
    metrics = list(results)
    common = tuple(label for label in _NAMING if all(metric.get(label) for metric in metrics))
    for labels in (_DEFAULT, common, common + _REMARK):
        if labels and _distinct(metrics, labels):
            return DEFAULT_FORMAT if labels == _DEFAULT else _joined(labels)
    return _joined(["scoreName"]) if len(metrics) == 1 else None


def _distinct(metrics: Iterable[Mapping[str, str]], labels: Sequence[str]) -> bool:
    """Tell whether all have all labels, and no two the same values."""
    names = [tuple(metric.get(label, "") for label in labels) for metric in metrics]
    return all(map(all, names)) and len(set(names)) == len(names)


def _joined(labels: Iterable[str]) -> str:
    return ";".join(f"${{{label}}}" for label in labels)
