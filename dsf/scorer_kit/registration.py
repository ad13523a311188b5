"""Writes the DynamicScorer of a scoring API: its format, and what its author has to change."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from ipaddress import ip_address
from typing import Any, Literal
from urllib.parse import urlsplit

import yaml

from dsf.api import names
from dsf.api.crd.dynamic_scorer import DEFAULT_FORMAT
from dsf.api.scoring.dimension_format import DimensionFormat
from dsf.api.scoring.scoring_api import ScorerConfig
from dsf.kube.kinds import DYNAMIC_SCORER

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
            joined = ";".join(f"${{{label}}}" for label in labels)
            return DEFAULT_FORMAT if labels == _DEFAULT else joined
    return OF_CLUSTER if len(metrics) == 1 else None


def _distinct(metrics: Iterable[Mapping[str, str]], labels: Sequence[str]) -> bool:
    """Tell whether all have all labels, and no two the same values."""
    names = [tuple(metric.get(label, "") for label in labels) for metric in metrics]
    return all(map(all, names)) and len(set(names)) == len(names)


def further_formats(config: ScorerConfig, dimension_format: str) -> list[str]:
    """Return the format that names the entry of a config's default score, if it needs one."""
    default, form = config.scoring.default_score, DimensionFormat.parse(dimension_format)
    unnamed = default is not None and not default.entries
    return [OF_CLUSTER] if unnamed and isinstance(form, DimensionFormat) and form.named else []


FALLBACK_DESCRIPTION = "What the score means"

LONGEST_DESCRIPTION = 4096
"""Characters that the CRD accepts."""

FormatOrigin = Literal["given", "suggested", "default"]
"""Where the dimension format comes from: the author, the labels of results, or neither."""

_APPLY = "kubectl apply -f -"


def dynamic_scorer(
    name: str, config: ScorerConfig, config_url: str, formats: Sequence[str]
) -> dict[str, Any]:
    """Return the DynamicScorer; source and scoring come from the config, which the hub polls.

    The first of `formats` is the scoreDimensionFormat, the others are scoreDimensionFormats.
    """
    dimension_format, *given = formats
    further = list(dict.fromkeys((*given, *further_formats(config, dimension_format))))
    return DYNAMIC_SCORER.object(
        metadata={"name": name, "namespace": names.HUB_NAMESPACE},
        spec={
            "description": config.description[:LONGEST_DESCRIPTION] or FALLBACK_DESCRIPTION,
            "configURL": config_url,
            "configSyncMode": "Full",
            "location": "Internal",
            "scoreDestination": "AddOnPlacementScore",
            "scoreDimensionFormat": dimension_format,
            **({"scoreDimensionFormats": further} if further else {}),
        },
    )


def advice(config: ScorerConfig, config_url: str, chosen: FormatOrigin) -> Iterator[str]:
    """Yield what to change before the object is applied; each is one line."""
    yield f"Nothing has been applied: look at it, then pipe it to {_APPLY} on the hub."
    if _only_here(config_url):
        yield "configURL is on this machine: write an address that the hub and all agents reach."
    if not config.description:
        yield "description: say what a score means, and in which unit."
    if chosen == "suggested":
        yield "scoreDimensionFormat is suggested by the labels of the scorer's results."
    elif chosen == "default":
        yield "scoreDimensionFormat is the default: write the labels that your results have."
    if config.scoring.default_score and not config.scoring.default_score.entries:
        yield "A format of ${cluster} and ${scoreName} only names the entry of the default score:"
        yield "  scoring.defaultScore.entries names others."
    if any(one.type.lower() == "prometheus" for one in config.all_sources):
        yield "source.host of the config must be reachable from every managed cluster; the"
        yield "  DynamicScoringConfig replaces it for some of them by sourceOverrides."
    if config.context and config.context.from_manifests:
        yield "context needs the workloads and policies: the hub controller must be allowed to send"
        yield "  those of their namespaces (--manifest-namespace)."
    yield "If it wants a token, add spec.scoring.auth.tokenSecretRef {name, key}: a Secret in"
    yield f"  namespace {names.AGENT_NAMESPACE} of each managed cluster."


def as_yaml(document: dict[str, Any], comments: Iterator[str]) -> str:
    """Return the object as YAML below its comments."""
    head = "".join(f"# {line}\n" for line in comments)
    return head + yaml.safe_dump(document, sort_keys=False, width=100)


def _only_here(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        address = ip_address(host)
    except ValueError:
        return host == "localhost"
    return address.is_loopback or address.is_unspecified
