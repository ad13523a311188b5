"""The score arrays agree with the definition for every pair of an app and a device."""

import tracemalloc
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dsf.api.scoring.dimension_format import DimensionFormat
from dsf.kube.port import Object
from optimizer.domain.fleet import Fleet
from optimizer.domain.score_matrix import ScoreMatrix
from optimizer.domain.settings import DEFAULTS
from optimizer.model.formulate import too_many_scores
from optimizer.snapshot.fleet_reader import MAX_ISSUES, FleetReader
from optimizer.snapshot.fleet_snapshot import read_objects
from optimizer.snapshot.observation import Observation
from optimizer.wire.request import OptimizeRequest
from tests.optimizer.build import (
    NOW,
    PERFORMANCE,
    SETTINGS,
    body,
    guide,
    named,
    policy,
    read_fleet,
    request,
    score,
    workload,
)

CLUSTERS = ("worker01", "worker02")
APPS = ("app01", "app02")
DEVICES = tuple(device for device, _ in SETTINGS)
FORMATS = (
    "${app};${device}",
    "${cluster}/${app}/${device}",
    "${node}-${app}/${device}",
    "${app}",
    "${app}|${meta}",
)
PASSED, COMING = "2026-11-20T11:59:59Z", "2026-11-20T12:00:01Z"


@st.composite
def objects(draw: st.DrawFn, cluster: str, text: str) -> Object:
    """A score object of entries that have the form, nearly have it, or stand twice."""
    form = DimensionFormat.parse(text)
    assert isinstance(form, DimensionFormat)
    labels = st.fixed_dictionaries(
        {
            "app": st.sampled_from([*APPS, "other"]),
            "device": st.sampled_from(DEVICES),
            "cluster": st.sampled_from([cluster, cluster, "elsewhere"]),
            "node": st.sampled_from(["n1", "n2"]),
            "meta": st.sampled_from(["x", "y"]),
        }
    )
    names = st.one_of(labels.map(form.render), labels.map(form.render), st.just("of no form"))
    values = st.one_of(st.integers(-100, 100), st.sampled_from([True, "80", None, 70_000]))
    entries = draw(st.lists(st.tuples(names, values), max_size=12))
    name = draw(st.sampled_from(["performance", "performance", "power"]))
    return score(cluster, name, entries, draw(st.sampled_from([None, COMING, PASSED])))


def value(obj: Object | None, form: DimensionFormat, cluster: str, app: str, device: str) -> Any:
    """Return the score of a pair, or the reason why it has none."""
    if obj is None:
        return "MissingScoreObject"
    if obj["status"].get("validUntil") == PASSED:
        return "ExpiredScore"
    entries = [item for item in obj["status"]["scores"] if type(item["value"]) is int]
    if entries and all(form.match(item["name"]) is None for item in entries):
        return "WrongScoreFormat"
    wanted = {"cluster": cluster, "app": app, "device": device}
    matched = [(form.match(item["name"]), item) for item in entries]
    found = [
        item
        for labels, item in matched
        if labels is not None
        and all(labels.get(name, wanted[name]) == wanted[name] for name in wanted)
    ]
    if len({item["name"] for item in found}) < len(found):
        return "AmbiguousScore"
    return max(item["value"] for item in found) if found else "MissingScore"


@st.composite
def cases(draw: st.DrawFn) -> tuple[Observation, str, float | None]:
    text = draw(st.sampled_from(FORMATS))
    scores = [draw(objects(name, text)) for name in CLUSTERS if draw(st.booleans())]
    missing = draw(st.sampled_from([None, 7.0, 0.1]))
    return replace(guide(CLUSTERS), scores=tuple(scores)), text, missing


@given(cases())
def test_every_pair_has_the_value_or_the_gap_that_the_definition_gives_it(
    case: tuple[Observation, str, float | None],
) -> None:
    observation, text, missing = case
    form = DimensionFormat.parse(text)
    assert isinstance(form, DimensionFormat)
    named = {
        obj["metadata"]["namespace"]: obj
        for obj in observation.scores
        if obj["metadata"]["name"] == "performance"
    }
    pairs = [(c, app, device) for c in CLUSTERS for app in APPS for device in DEVICES]
    read = {key: value(named.get(key[0]), form, *key) for key in pairs}
    asked = request(
        preference={"addonPlacementScore": "performance", "scoreDimensionFormat": text},
        missingScore="forbid" if missing is None else missing,
    )
    fleet = read_fleet(observation, asked)
    values = {key: missing if isinstance(found, str) else found for key, found in read.items()}
    assert fleet.scores[asked.preference.key] == {
        key: found for key, found in values.items() if found is not None
    }
    assert Counter((issue.reason, issue.cluster, issue.device) for issue in fleet.issues) == gaps(
        read
    )
    assert fleet.unlisted_issues == 0


def fleet_reader(observation: Observation, asked: OptimizeRequest) -> FleetReader:
    unscored = read_objects(observation, asked, DEFAULTS)
    return FleetReader(unscored, asked, settings=DEFAULTS, now=NOW)


def gaps(read: Mapping[tuple[str, str, str], Any]) -> Counter[tuple[str, str, str]]:
    """One gap for each pair, or for the whole object."""
    found = Counter[tuple[str, str, str]]()
    for (cluster, _, device), reason in read.items():
        if reason in ("MissingScore", "AmbiguousScore"):
            found[reason, cluster, device] += 1
        elif isinstance(reason, str):
            found[reason, cluster, ""] = 1
    return found


def test_the_order_of_pages_and_reading_twice_change_nothing() -> None:
    observation = guide()
    whole = read_fleet(observation)
    reader = fleet_reader(observation, request())
    stale = score("worker01", "performance", {"app01;all": 1})
    for page in ((stale,), observation.scores[::-1], observation.scores):
        reader.add(page)
    assert reader.snapshot().fleet == whole


_UNTIL = "2026-11-20T12:01:00Z"
_VERSIONS = {
    "1": score("", "performance", named(PERFORMANCE)),
    "2": score("", "performance", {**named(PERFORMANCE), "app01;all": -100}, _UNTIL),
    "3": score("", "performance", {"app01;3g.48gb": 70_001, "app02;all": 7}),
    "4": score("", "performance", [("app01;all", 1), ("app01;all", 2), ("other", 3)]),
    "5": score("", "performance", {"of-no-form": 3}),
}


def _of(cluster: str, version: str) -> Object:
    written = _VERSIONS[version]
    metadata = {**written["metadata"], "namespace": cluster, "resourceVersion": version}
    return {**written, "metadata": metadata}


@given(
    st.lists(
        st.tuples(
            st.dictionaries(st.sampled_from(CLUSTERS), st.sampled_from(sorted(_VERSIONS))),
            st.sampled_from([0, 30, 60, -60]),
        ),
        min_size=2,
        max_size=5,
    ),
    st.sampled_from([None, 0.0]),
)
@example([({"worker01": "3"}, 0), ({"worker01": "1"}, 0)], None)
@example([({"worker01": "2"}, 0), ({"worker01": "2"}, 60), ({"worker01": "2"}, -60)], 0.0)
def test_scores_that_have_not_changed_read_as_they_would_anew(
    looks: list[tuple[dict[str, str], int]], missing: float | None
) -> None:
    asked = request(**body(), missingScore="forbid" if missing is None else missing)
    unscored, now, last = read_objects(guide(), asked, DEFAULTS), NOW, None
    for versions, seconds in looks:
        now += timedelta(seconds=seconds)
        objects = [_of(cluster, version) for cluster, version in versions.items()]
        anew = FleetReader(unscored, asked, settings=DEFAULTS, now=now)
        again = FleetReader(unscored, asked, settings=DEFAULTS, now=now, last=last)
        for reader in (anew, again):
            reader.add(objects)
        found, expected = again.snapshot(), anew.snapshot()
        assert (found.fleet, found.score_versions) == (expected.fleet, expected.score_versions)
        tables = [item.fleet.scores["performance"].table for item in (found, expected)]
        assert tables[0].dtype == tables[1].dtype
        last = again


def test_gaps_that_nobody_would_read_are_counted_and_no_objects() -> None:
    names = [f"w{index:03}" for index in range(250)]
    devices = [policy(f"p{index}", f"d{index}", 2) for index in range(60)]
    observation = replace(
        guide(["worker01"]),
        policies=tuple(devices),
        workloads=tuple(workload(name, name) for name in names),
        scores=(score("worker01", "performance", {"w000;d0": 1}),),
    )
    asked = request(
        "performance",
        [],
        names,
        clusters=[
            {"name": "worker01", "availablePolicies": [{"name": f"p{i}"} for i in range(60)]}
        ],
    )
    fleet = read_fleet(observation, asked)
    assert len(fleet.issues) == MAX_ISSUES
    assert (
        len(fleet.issues) + fleet.unlisted_issues == 60 * 21
    )  # 20 pairs and a number, of each device
    assert fleet.issues[0].message.startswith(
        "cluster worker01: AddOnPlacementScore performance has"
    )


def test_scores_that_would_not_fit_are_refused_before_they_are_read() -> None:
    gpus = {"gpus": [{"model": "A100-40GB"}]}
    asked = request(clusters=[{"name": "worker01", **gpus}])
    unscored = read_objects(guide(), asked, DEFAULTS)
    wanted = unscored.score_index
    refused = too_many_scores(len(wanted.apps), len(wanted.places), len(asked.read_scores), 1)
    assert refused is not None
    assert refused.reason == "TooManyPlaces"
    assert "scores of 2 apps" in refused.detail


def test_clusters_that_all_have_other_devices_take_no_room_for_the_names_of_each_pair() -> None:
    clusters, apps = [f"c{i:03}" for i in range(150)], [f"w{i:03}" for i in range(100)]
    observation = replace(
        guide(clusters),
        policies=tuple(policy(f"p-{name}", f"d-{name}", 2) for name in clusters),
        workloads=tuple(workload(name, name) for name in apps),
    )
    choices = [{"name": c, "availablePolicies": [{"name": f"p-{c}"}]} for c in clusters]
    asked = request("performance", [], apps, clusters=choices)
    reader = fleet_reader(observation, asked)
    tracemalloc.start()
    for name in clusters:
        reader.add([score(name, "performance", {f"{app};d-{name}": 1 for app in apps})])
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    fleet = reader.snapshot().fleet
    assert isinstance(fleet, Fleet)
    pairs = len(clusters) * len(apps)
    assert len(fleet.scores["performance"]) == pairs
    assert held < 30 * pairs  # a name takes 60 bytes and more


@pytest.mark.parametrize("wide", [3.0, 70_000.0, 0.1, 1e300])
def test_an_array_holds_every_score_exactly(wide: float) -> None:
    few = ScoreMatrix.of({("c", "a", "d"): 1.0})
    more = few.with_values({("c", "b", "d"): wide, ("e", "a", ""): -2.0})
    assert more == {("c", "a", "d"): 1.0, ("c", "b", "d"): wide, ("e", "a", ""): -2.0}
    assert len(few) == 1
    assert more.known() == {("c", "d"), ("e", "")}
    assert np.array_equal(more.of_app("a"), [1.0, -2.0, np.nan], equal_nan=True)
    assert np.isnan(more.of_app("of nobody")).all()
