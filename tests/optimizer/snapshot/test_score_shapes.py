"""A score of any shape is worth what the same score, spelt out for every place, is worth."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsf.api.names import HUB_NAMESPACE
from dsf.kube import kinds
from dsf.kube.port import Object
from optimizer.domain.fleet import Fleet
from optimizer.snapshot.observation import Observation
from optimizer.wire.request import OptimizeRequest
from tests.optimizer.build import SETTINGS, guide, obj, read_fleet, request, score

CLUSTERS, APPS = ("worker01", "worker02"), ("app01", "app02")
DEVICES = tuple(device for device, _ in SETTINGS)
PLACES = tuple(product(CLUSTERS, APPS, DEVICES))
DIMENSIONS = {
    "cluster": CLUSTERS,
    "app": APPS,
    "device": DEVICES,
    "node": ("n1", "n2"),
    "pod": ("p1", "p2"),
}
BEST = {"Max": max, "Min": min, "Mean": lambda values: sum(values) / len(values)}
Shape = tuple[str, ...]
Results = dict[Shape, dict[tuple[str, ...], int]]


def scorer(name: str, *formats: str, namespace: str = HUB_NAMESPACE, **metadata: Any) -> Object:
    spec = {
        "scoring": {"params": {"name": name}},
        "scoreDimensionFormat": formats[0],
        "scoreDimensionFormats": list(formats[1:]),
    }
    made = obj(kinds.DYNAMIC_SCORER, f"{name}-scorer", namespace, spec=spec)
    made["metadata"] |= metadata
    return made


def hub(entries: Mapping[str, Mapping[str, int]], *scorers: Object) -> Observation:
    """The guide's hub with the score headroom: entries by cluster."""
    scores = tuple(score(cluster, "headroom", own) for cluster, own in entries.items())
    return replace(guide(), scores=scores, scorers=scorers)


def preferring(**more: Any) -> OptimizeRequest:
    return request(preference={"addonPlacementScore": "headroom", **more})


def only_score(fleet: Fleet) -> dict[tuple[str, str, str], float]:
    (found,) = fleet.scores.values()
    return dict(found)


def reasons(fleet: Fleet) -> set[str]:
    return {issue.reason for issue in fleet.issues}


@st.composite
def results(draw: st.DrawFn) -> Results:
    """What a scorer returns, by the dimensions that tell its results apart, in declared order."""
    shapes = st.lists(st.sampled_from([*DIMENSIONS]), unique=True, max_size=3).map(tuple)
    found: Results = {}
    for shape in draw(st.lists(shapes, min_size=1, max_size=3, unique_by=frozenset)):
        labels = product(*(DIMENSIONS[name] for name in shape))
        told = [each for each in labels if draw(st.booleans())]
        found[shape] = {each: draw(st.integers(-100, 100)) for each in told}
    return found


def spelt_out(read: Results, place: tuple[str, str, str], aggregation: str) -> float | None:
    """The score of a place by definition."""
    at = dict(zip(("cluster", "app", "device"), place, strict=True))

    def rank(shape: Shape) -> tuple[int, int]:
        return -len({"app", "device"} & set(shape)), len({"node", "pod"} & set(shape))

    for shape in sorted(read, key=rank):
        values = [
            value
            for labels, value in read[shape].items()
            if all(at.get(name, label) == label for name, label in zip(shape, labels, strict=True))
        ]
        if values:
            return float(BEST[aggregation](values))
    return None


@given(results(), st.sampled_from(["Max", "Min", "Mean"]), st.booleans())
def test_any_shape_equals_the_score_spelt_out_for_every_place(
    read: Results, aggregation: str, inverted: bool
) -> None:
    forms = {
        shape: f"s{number}" + "".join(f"/${{{name}}}" for name in shape) + "/${scoreName}"
        for number, shape in enumerate(read)
    }
    entries: dict[str, dict[str, int]] = {name: {} for name in CLUSTERS}
    for number, (shape, own) in enumerate(read.items()):
        for labels, value in own.items():
            at = dict(zip(shape, labels, strict=True))
            name = f"s{number}" + "".join(f"/{label}" for label in labels) + "/headroom"
            for cluster in [at["cluster"]] if "cluster" in at else CLUSTERS:
                entries[cluster][name] = value
    best = "Min" if inverted else "Max"
    stated = {} if aggregation == best else {"aggregation": aggregation}
    asked = preferring(invert=inverted, **stated)
    spelt = ((place, spelt_out(read, place, aggregation)) for place in PLACES)
    found = read_fleet(hub(entries, scorer("headroom", *forms.values())), asked)
    assert only_score(found) == {place: value for place, value in spelt if value is not None}


@pytest.mark.parametrize(
    ("entries", "app01_on_3g"),
    [
        ({"app01;3g.48gb": 5, "app01": 4, "3g.48gb": 3, "worker01": 2, "headroom": 1}, 5),
        ({"app01": 4, "3g.48gb": 3, "worker01": 2, "headroom": 1}, 4),
        ({"3g.48gb": 3, "worker01": 2, "headroom": 1}, 3),
        ({"worker01": 2, "headroom": 1}, 2),
        ({"headroom": 1}, 1),
    ],
)
def test_the_first_try_needs_neither_a_format_nor_a_scorer(
    entries: dict[str, int], app01_on_3g: int
) -> None:
    found = read_fleet(hub({"worker01": entries, "worker02": entries}), preferring())
    assert only_score(found)["worker01", "app01", "3g.48gb"] == app01_on_3g


def test_names_that_nobody_explains_are_an_issue_with_what_to_write() -> None:
    found = read_fleet(hub({"worker01": {"n1": 1}, "worker02": {"app09;all": 1}}), preferring())
    wrong, *missing = found.issues
    assert (wrong.reason, wrong.cluster) == ("WrongScoreFormat", "worker01")
    assert f"no DynamicScorer in namespace {HUB_NAMESPACE} says what it is" in wrong.message
    assert {issue.reason for issue in missing} == {"MissingScore"}


def test_what_the_request_states_replaces_what_the_scorer_declares() -> None:
    entries = {"n1": 1, "n2": 9, "whole/headroom": 5}
    declared = scorer("headroom", "${node}", "whole/${scoreName}")
    observation = hub({"worker01": entries, "worker02": entries}, declared)
    assert set(only_score(read_fleet(observation, preferring())).values()) == {5}
    by_node = preferring(scoreDimensionFormat="n${node}")
    assert set(only_score(read_fleet(observation, by_node)).values()) == {9}


def test_only_a_scorer_of_the_hubs_namespace_or_one_that_the_hub_served_is_believed() -> None:
    strange = scorer("headroom", "${node}", namespace="elsewhere")
    entries = {"worker01": {"n1": 1}, "worker02": {"n1": 1}}
    assert reasons(read_fleet(hub(entries, strange), preferring())) == {"WrongScoreFormat"}
    served = {**strange, "status": {"scoreName": "headroom"}}
    assert reasons(read_fleet(hub(entries, served), preferring())) == set()
    young = scorer("headroom", "${app}", creationTimestamp="2026-02-01T00:00:00Z")
    old = scorer("headroom", "${node}", creationTimestamp="2026-01-01T00:00:00Z")
    assert reasons(read_fleet(hub(entries, young, old), preferring())) == set()


@pytest.mark.parametrize(
    ("formats", "entry"),
    [
        (("${app}", "${node}"), "app01"),
        (("${node}", "${device}"), "n1"),
        (("${node};${pod}", "${app};${device}"), "app01;all"),
        (("${app}", "${device}"), "all"),
    ],
)
def test_an_entry_that_two_formats_claim_is_refused_on_its_cluster(
    formats: tuple[str, str], entry: str
) -> None:
    entries = {"worker01": {entry: 1}, "worker02": {"only/app01": 1, "only/app02": 1}}
    if formats == ("${app}", "${device}"):  # an app has the name of a device
        entries["worker02"]["only/all"] = 1
    observation = hub(entries, scorer("headroom", *formats, "only/${app}"))
    if formats == ("${app}", "${device}"):
        observation.workloads[0]["metadata"]["labels"]["app"] = entry
    found = read_fleet(observation, preferring())
    (issue,) = found.issues
    assert (issue.reason, issue.cluster) == ("AmbiguousEntry", "worker01")
    assert all(f'"{form}"' in issue.message for form in (*formats, entry))
    assert {cluster for cluster, _, _ in only_score(found)} == {"worker02"}


def test_apps_and_devices_may_have_formats_of_one_form() -> None:
    entries = {"app01": 7, "3g.48gb": 3, "unknown": 99}
    declared = scorer("headroom", "${app}", "${device}")
    found = only_score(read_fleet(hub({"worker01": entries}, declared), preferring()))
    assert found == {
        **{("worker01", "app01", device): 7 for device in DEVICES},
        ("worker01", "app02", "3g.48gb"): 3,
    }


def test_two_scores_of_different_shapes_are_one_objective() -> None:
    observation = replace(
        guide(),
        scores=tuple(
            score(cluster, name, entries)
            for cluster in CLUSTERS
            for name, entries in (("of-node", {"n1": 1, "n2": 2}), ("of-device", {"all": 5}))
        ),
        scorers=(scorer("of-node", "${node}"), scorer("of-device", "${device}")),
    )
    asked = request(
        preference={"addonPlacementScore": "of-node"},
        objectives=[{"addonPlacementScore": "of-device"}],
    )
    fleet = read_fleet(observation, asked)
    assert fleet.scores["of-node"]["worker01", "app01", "all"] == 2
    assert fleet.scores["of-device"]["worker01", "app01", "all"] == 5


def test_one_format_stated_for_a_score_counts_where_the_request_leaves_it_out() -> None:
    entries = {"worker01": {"app01;all": 1, "app01": 9}}
    limit = {"name": "cap", "maximum": 9, "score": {"addonPlacementScore": "headroom"}}
    open_, stated = limit["score"], {**limit["score"], "scoreDimensionFormat": "${app};${device}"}
    for preference, limited in ((stated, open_), (open_, stated)):
        asked = request(preference=preference, limits=[{**limit, "score": limited}])
        assert only_score(read_fleet(hub(entries), asked)) == {("worker01", "app01", "all"): 1}


def test_a_score_says_which_entry_it_is() -> None:
    entries = {"n1/app01": 3, "n2/app01": 8, "3g.48gb": 4, "n1": 1, "n2": 5}
    declared = scorer("headroom", "${device}", "${node}/${app}", "x${cluster}")
    observation = hub({"worker01": entries, "worker02": {"xworker02": 6}}, declared)

    def entry(cluster: str, app: str, device: str, **stated: Any) -> str:
        asked = preferring(**stated).model_copy(update={"explain": True})
        (found,) = read_fleet(observation, asked).scores.values()
        return found.entry((cluster, app, device))

    assert entry("worker01", "app01", "all") == "n2/app01 (the highest of 2)"
    assert entry("worker01", "app01", "all", invert=True) == "n1/app01 (the lowest of 2)"
    assert entry("worker01", "app01", "all", aggregation="Mean") == (
        "${node}/app01 (the mean of 2)"
    )
    assert entry("worker01", "app02", "3g.48gb") == "3g.48gb"
    assert entry("worker02", "app02", "3g.48gb") == "xworker02"
    assert entry("worker01", "app02", "all") == ""
