"""Which source override wins on which managed cluster."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsf.hub.snapshot.distribution_rules import (
    Hosts,
    Override,
    OverrideIndex,
    SourceHost,
    index_overrides,
)
from dsf.hub.snapshot.managed_cluster import ManagedCluster
from dsf.kube.selectors import LabelSelector, Requirement

SCORES = frozenset({"a", "b"})
MANY = 3000

values = st.sets(st.sampled_from(["eu", "us"]), min_size=1).map(frozenset)
keys = st.sampled_from(["region", "zone"])
requirements = st.one_of(
    st.builds(Requirement, keys, st.sampled_from(["In", "NotIn"]), values),
    st.builds(Requirement, keys, st.sampled_from(["Exists", "DoesNotExist"])),
)
selectors = st.lists(requirements, max_size=2).map(lambda each: LabelSelector(tuple(each)))
scores = st.sampled_from([None, "a", "b", "gone"])
places = st.one_of(
    st.tuples(st.sampled_from(["c1", "c2"]), st.none()), st.tuples(st.none(), selectors)
)
clusters = st.builds(
    ManagedCluster,
    st.sampled_from(["c1", "c2"]),
    labels=st.dictionaries(keys, st.sampled_from(["eu", "us", "asia"])),
)


def managed(name: str, labels: Mapping[str, str] | None = None) -> ManagedCluster:
    return ManagedCluster(name, accepted=True, being_deleted=False, labels=labels or {})


@st.composite
def several(draw: st.DrawFn) -> list[Override]:
    chosen = draw(st.lists(st.tuples(places, scores), max_size=6))
    return [
        Override(place, cluster, selector, score, f"http://h{place}")
        for place, ((cluster, selector), score) in enumerate(chosen)
    ]


def means(override: Override, cluster: ManagedCluster) -> bool:
    if override.selector:
        return override.selector.matches(cluster.labels)
    return override.cluster == cluster.name


def host(hosts: Hosts, score: str) -> str | None:
    return next((each.host for each in hosts if each.fits(score, "")), None)


@given(given_=several(), cluster=clusters)
def test_the_first_that_matches_counts(given_: list[Override], cluster: ManagedCluster) -> None:
    hosts = index_overrides(given_).hosts(cluster, SCORES)
    for score in SCORES:
        matching = [
            each.host for each in given_ if each.score in (None, score) and means(each, cluster)
        ]
        assert host(hosts, score) == next(iter(matching), None)


def test_clusters_with_the_same_hosts_are_alike_whatever_chose_them() -> None:
    named = [Override(place, f"c{place}", None, None, "http://near") for place in range(2)]
    found = index_overrides(named)
    assert found.hosts(managed("c0"), SCORES) == found.hosts(managed("c1"), SCORES)


def test_an_override_of_one_source_leaves_the_others_to_those_that_follow() -> None:
    given_ = [
        Override(0, "c1", None, None, "http://kepler", "power"),
        Override(1, "c1", None, None, "http://near"),
        Override(2, "c1", None, "a", "http://never"),
    ]
    hosts = index_overrides(given_).hosts(managed("c1"), SCORES)
    assert hosts == (SourceHost(None, "http://kepler", "power"), SourceHost(None, "http://near"))
    assert [one.fits("a", "power") for one in hosts] == [True, True]
    assert [one.fits("a", "gpu") for one in hosts] == [False, True]


class Counted(dict[str, str]):
    """Labels that count how often they are looked at."""

    asked = 0

    def get(self, *args: Any) -> Any:
        self.asked += 1
        return super().get(*args)


def by_value(number: int) -> Requirement:
    return Requirement("rack", "In", frozenset({f"r{number}"}))


def by_key(number: int) -> Requirement:
    return Requirement(f"rack-{number}", "Exists")


def many(asked: Callable[[int], Requirement]) -> OverrideIndex:
    return index_overrides(
        Override(number, None, LabelSelector((asked(number),)), None, "http://near")
        for number in range(MANY)
    )


@pytest.mark.parametrize("asked", [by_value, by_key])
def test_thousands_of_overrides_by_label_are_not_all_tried_for_each_cluster(
    asked: Callable[[int], Requirement],
) -> None:
    labels = Counted({"rack": "r7", "rack-7": "", "region": "eu"})
    found = many(asked)
    assert found.hosts(managed("c1", labels), SCORES) == (SourceHost(None, "http://near"),)
    assert len([*found.idle([managed("c1", labels)])]) == MANY - 1
    assert labels.asked < 20
