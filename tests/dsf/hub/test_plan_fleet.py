"""The plan: which managed clusters get which summaries, and what the statuses report."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsf.hub.snapshot.registered_scorer import ProbeFailure, ProbeResult
from dsf.hub.snapshot.summaries_work import summaries_text
from dsf.kube.changes import Change, Create, Delete
from dsf.kube.kinds import ADD_ON_PLACEMENT_SCORE, MANIFEST_WORK
from dsf.kube.port import Object
from tests.dsf.hub.builders import (
    LATER,
    NOW,
    World,
    add_on,
    after,
    answer,
    cluster,
    condition,
    leaving,
    planned,
    published,
    scorer,
    scoring_config,
    settled,
    target,
    unavailable,
)

FINALIZER = "dynamic-scoring.open-cluster-management.io/dynamic-scoring-config-finalizer"
FIVE = tuple(f"c{number}" for number in range(5))


def world(**parts: Any) -> World:
    obj = scorer()
    base = World(
        scorers=(obj,),
        config=scoring_config(),
        clusters=tuple(cluster(name) for name in FIVE),
        probes={target(obj): answer()},
    )
    return replace(base, **parts)


def told(end: World) -> list[str]:
    return sorted(str(work["metadata"]["namespace"]) for work in end.works)


def status(end: World) -> dict[str, Any]:
    (obj,) = end.scorers
    return dict(obj["status"])


@pytest.mark.parametrize(
    "withheld",
    [
        world(probes={target(scorer()): ProbeResult(ProbeFailure("BadStatus", "503"))}),
        world(probes={target(scorer()): ProbeResult(None, ProbeFailure("NotJSON", "no"))}),
        world(config=None),
        world(add_ons=()),
        world(config=scoring_config(*((name, "cpu_score") for name in FIVE))),
    ],
    ids=["sick", "without a config", "no DynamicScoringConfig", "no add-on", "masked everywhere"],
)
def test_of_what_is_not_distributed_no_scores_are_expected(withheld: World) -> None:
    end = settled(withheld)
    assert condition(end.scorers[0], "Scoring") == (
        "Unknown",
        "NotDistributed",
        "see the condition Distributed",
    )
    assert condition(end.scorers[0], "Distributed")[0] == "False"


def test_only_clusters_with_the_add_on_are_told() -> None:
    add_ons = (add_on("c1"), add_on("c3"), leaving(add_on("c4")))
    end = settled(world(add_ons=add_ons))
    assert told(end) == ["c1", "c3"]
    assert told(settled(replace(end, add_ons=(add_on("c3"),)))) == ["c3"]


def test_where_nobody_is_told_it_says_why() -> None:
    bare = settled(world(add_ons=()))
    state, reason, message = condition(bare.config, "Ready")
    assert (state, reason) == ("False", "NoClusters")
    assert "ManagedClusterAddOn" in message
    assert condition(bare.scorers[0], "Distributed")[1:] == ("NoClusters", message)
    unchosen = settled(world(config=scoring_config(clusterSets=["gpu"])))
    assert "clusterSets" in condition(unchosen.config, "Ready")[2]
    alone = settled(world(clusters=(cluster("c1", accepted=False),)))
    assert "accepted" in condition(alone.config, "Ready")[2]


SET = "cluster.open-cluster-management.io/clusterset"
LABELLED = (
    cluster("c1", region="eu", **{SET: "gpu"}),
    cluster("c2", region="us", **{SET: "gpu"}),
    cluster("c3", region="eu", **{SET: "cpu"}),
    cluster("c4"),
)
EU = {"matchLabels": {"region": "eu"}}
NOT_EU = {"matchExpressions": [{"key": "region", "operator": "NotIn", "values": ["eu"]}]}


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ({}, ["c1", "c2", "c3", "c4"]),
        ({"clusterSelector": {}}, ["c1", "c2", "c3", "c4"]),
        ({"clusterSelector": EU}, ["c1", "c3"]),
        ({"clusterSelector": NOT_EU}, ["c2", "c4"]),
        ({"clusterSets": ["gpu"]}, ["c1", "c2"]),
        ({"clusterSets": ["gpu", "cpu"]}, ["c1", "c2", "c3"]),
        ({"clusterSets": ["global"]}, ["c1", "c2", "c3", "c4"]),
        ({"clusterSets": ["gpu"], "clusterSelector": EU}, ["c1"]),
        ({"clusterSets": []}, []),
    ],
)
def test_the_config_chooses_clusters(chosen: dict[str, Any], expected: list[str]) -> None:
    assert told(settled(world(clusters=LABELLED, config=scoring_config(**chosen)))) == expected


def test_a_cluster_that_is_relabelled_is_told_or_no_longer() -> None:
    end = settled(world(clusters=LABELLED, config=scoring_config(clusterSelector=EU)))
    moved = (cluster("c1", region="us"), *LABELLED[1:3], cluster("c4", region="eu"))
    assert told(settled(replace(end, clusters=moved))) == ["c3", "c4"]


BOTH = {"clusterName": "c1", "clusterSelector": EU}


def test_a_selector_that_cannot_be_read_changes_no_work_and_says_where() -> None:
    end = settled(world())
    bad = {"matchExpressions": [{"key": "a b", "operator": "Exists"}]}
    for where, spec in (
        ("spec.clusterSelector", {"clusterSelector": bad}),
        (
            "spec.sourceOverrides[0].clusterSelector",
            {"sourceOverrides": [{"clusterSelector": bad, "sourceHost": "http://h"}]},
        ),
        (
            "spec.sourceOverrides[0]: name either clusterName or clusterSelector",
            {"sourceOverrides": [{**BOTH, "sourceHost": "http://h"}]},
        ),
        (
            "spec.sourceOverrides[1]: name either clusterName or clusterSelector",
            {
                "sourceOverrides": [
                    {"clusterName": "c1", "sourceHost": "http://h"},
                    {"sourceHost": "http://h"},
                ]
            },
        ),
    ):
        config = {**dict(end.config or {}), "spec": spec}
        held = settled(replace(end, config=config))
        assert held.works == end.works
        state, reason, message = condition(held.config, "Ready")
        assert (state, reason) == ("False", "InvalidSpec")
        assert where in message


def test_clusters_differ_in_where_their_source_is() -> None:
    overrides = [
        {"clusterName": "c1", "scoreName": "other", "sourceHost": "http://other:1"},
        {"clusterName": "c1", "sourceHost": "https://thanos:10902/"},
        {"clusterSelector": EU, "sourceHost": "http://eu-prom:9090"},
    ]
    end = settled(world(clusters=LABELLED, config=scoring_config(sourceOverrides=overrides)))
    sources = {
        work["metadata"]["namespace"]: json.loads(summaries_text(work))[0]["sourceEndpoint"]
        for work in end.works
    }
    assert sources == {
        "c1": "https://thanos:10902/api/v1/query_range",
        "c2": "http://prometheus.monitoring.svc:9090/api/v1/query_range",
        "c3": "http://eu-prom:9090/api/v1/query_range",
        "c4": "http://prometheus.monitoring.svc:9090/api/v1/query_range",
    }
    assert condition(end.scorers[0], "Distributed")[0] == "True"


def test_overrides_that_match_nothing_are_named() -> None:
    overrides = [
        {"clusterName": "c9", "sourceHost": "http://h"},
        {"clusterName": "c1", "scoreName": "typo", "sourceHost": "http://h"},
        {"clusterSelector": {"matchLabels": {"a": "b"}}, "sourceHost": "http://h"},
        {"clusterName": "c1", "sourceName": "power", "sourceHost": "http://h"},
    ]
    end = settled(world(config=scoring_config(sourceOverrides=overrides)))
    state, reason, message = condition(end.config, "MasksMatched")
    assert (state, reason) == ("False", "NothingMatched")
    for place, why in enumerate(('"c9"', '"typo"', "clusterSelector", '"power"')):
        assert f"sourceOverrides[{place}]" in message
        assert why in message


@pytest.mark.parametrize(
    ("size", "reason", "works"),
    [
        (400 * 1024, "WithinLimit", 5),
        (400 * 1024 + 1, "NearLimit", 5),
        (500 * 1024, "NearLimit", 5),
        (500 * 1024 + 1, "TooLarge", 0),
    ],
)
def test_a_work_has_a_kibibyte_of_room_besides_its_summaries(
    size: int, reason: str, works: int
) -> None:
    def distributed(characters: int) -> World:
        big = [scorer(f"s{at:02}", url=f"http://s{at:02}/config", mode="None") for at in range(60)]
        each, more = divmod(characters, len(big))
        for at, obj in enumerate(big):
            query = "q" * (each + more if at == 0 else each)
            obj["spec"]["source"] = {"host": "http://prometheus", "params": {"query": query}}
            obj["spec"]["scoring"] = {"params": {"name": f"n{at}"}}
        probes = {target(obj): ProbeResult() for obj in big}
        return settled(world(scorers=tuple(big), probes=probes))

    text = summaries_text(distributed(6000).works[0])
    besides = len(json.dumps(text).encode()) - 6000 + 1024
    end = distributed(size - besides)
    state, told_reason, message = condition(end.config, "WithinLimit")
    assert (told_reason, len(end.works)) == (reason, works)
    assert (condition(end.config, "Ready")[1] == "TooLarge") == (works == 0)
    if reason != "WithinLimit":
        assert state == "False"
        assert "500 KiB" in message
        assert "c0" in message


def test_what_the_agents_say_is_gathered() -> None:
    broken = published(
        "c1", failing=("SourceFetched", "BadQuery"), message="parse error at char 7", until=""
    )
    scores = (
        published("c0"),
        broken,
        published("c2", failing=("Scored", "TimedOut"), message="5 s"),
        published("c3", until="2026-11-20T09:59:59Z"),
    )
    end = settled(world(scores=scores))
    assert status(end)["clusters"] == {"desired": 5, "distributed": 5, "scoring": 1, "failing": 3}
    assert status(end)["failingClusters"][0] == {
        "name": "c1",
        "reason": "BadQuery",
        "message": "parse error at char 7",
        "since": NOW,
    }
    assert [each["reason"] for each in status(end)["failingClusters"]] == [
        "BadQuery",
        "TimedOut",
        "ScoreExpired",
    ]
    state, reason, message = condition(end.scorers[0], "Scoring")
    assert (state, reason) == ("False", "ClustersFailing")
    assert 'c1: BadQuery: "parse error at char 7"' in message
    assert condition(end.scorers[0], "Ready")[:2] == ("True", "PartlyScoring")


def test_a_query_that_matches_nothing_is_told() -> None:
    empty = published("c1")
    for condition_ in empty["status"]["conditions"]:
        if condition_["type"] == "Scored":
            condition_["reason"] = "NoResults"
    end = settled(world(scores=(empty,)))
    [failing] = status(end)["failingClusters"]
    assert (failing["name"], failing["reason"]) == ("c1", "NoResults")
    assert "mask" in failing["message"]


def test_all_is_well_once_every_cluster_scores() -> None:
    end = settled(world(scores=tuple(published(name) for name in FIVE)))
    assert condition(end.scorers[0], "Scoring")[:2] == ("True", "Scoring")
    assert condition(end.scorers[0], "Ready")[:2] == ("True", "Distributed")
    assert "failingClusters" not in status(end)


def test_a_scorer_that_no_cluster_scores_is_not_ready() -> None:
    failing = ("Scored", "BadStatus")
    end = settled(world(scores=tuple(published(name, failing=failing) for name in FIVE)))
    assert condition(end.scorers[0], "Ready")[:2] == ("False", "NoClusterScores")


def test_many_failing_clusters_are_counted_and_the_first_are_named() -> None:
    names = [f"n{number:02}" for number in range(40)]
    end = settled(
        world(
            clusters=tuple(cluster(name) for name in names),
            scores=tuple(published(name, failing=("Scored", "X")) for name in names),
        )
    )
    assert status(end)["clusters"]["failing"] == 40
    assert [each["name"] for each in status(end)["failingClusters"]] == names[:10]


def test_silence_has_a_reason_where_the_hub_knows_one() -> None:
    gone = unavailable(cluster("c1"))
    idle = unavailable(add_on("c2"), "Available")
    start = world(
        clusters=(cluster("c0"), gone, cluster("c2")), add_ons=(add_on("c0"), add_on("c1"), idle)
    )
    end = settled(start)
    assert [(each["name"], each["reason"]) for each in status(end)["failingClusters"]] == [
        ("c1", "ClusterUnavailable"),
        ("c2", "AddOnUnavailable"),
    ]
    assert told(end) == ["c0", "c1", "c2"], "it gets its work when it is back"
    refused = {
        "type": "Applied",
        "status": "False",
        "reason": "AppliedManifestWorkFailed",
        "message": "namespaces is forbidden",
        "lastTransitionTime": NOW,
    }
    works = tuple({**work, "status": {"conditions": [refused]}} for work in end.works)
    unapplied = settled(replace(end, works=works))
    assert [each["reason"] for each in status(unapplied)["failingClusters"]] == [
        "WorkNotApplied",
        "ClusterUnavailable",
        "WorkNotApplied",
    ]


def test_the_work_of_a_cluster_that_is_gone_is_deleted_and_no_successor_of_it() -> None:
    end = settled(world())
    uids = {work["metadata"]["namespace"]: f"uid-{place}" for place, work in enumerate(end.works)}
    works = tuple(
        {**work, "metadata": {**work["metadata"], "uid": uids[work["metadata"]["namespace"]]}}
        for work in end.works
    )
    gone = replace(end, works=works, clusters=end.clusters[1:])
    name = works[0]["metadata"]["name"]
    assert [change for change in planned(gone) if change.kind == MANIFEST_WORK] == [
        Delete(MANIFEST_WORK, name, "c0", uids["c0"])
    ]


def test_equally_common_reasons_are_listed_by_name_and_five_of_them() -> None:
    reasons = ["F", "E", "D", "C", "B", "A"]
    names = [f"c{number}" for number in range(len(reasons))]
    start = world(
        clusters=tuple(map(cluster, names)),
        add_ons=tuple(map(add_on, names)),
        scores=tuple(
            published(name, failing=("Scored", reason))
            for name, reason in zip(names, reasons, strict=True)
        ),
    )
    message = condition(settled(start).scorers[0], "Scoring")[2]
    assert "(1 A, 1 B, 1 C, 1 D, 1 E);" in message


def test_scores_that_are_still_fresh_count_though_the_cluster_is_out_of_touch() -> None:
    start = world(clusters=(unavailable(cluster("c1")),), scores=(published("c1"),))
    assert status(settled(start))["clusters"]["scoring"] == 1
    assert (
        status(settled(start, now="2026-11-20T13:00:00Z"))["failingClusters"][0]["reason"]
        == "ClusterUnavailable"
    )


def test_what_the_agent_complains_of_counts_unless_the_cluster_is_out_of_touch() -> None:
    idle = unavailable(add_on("c1"), "Available")
    gone = unavailable(cluster("c2"))
    start = world(
        clusters=(cluster("c1"), gone),
        add_ons=(idle, add_on("c2")),
        scores=tuple(published(name, failing=("Scored", "Refused")) for name in ("c1", "c2")),
    )
    assert [each["reason"] for each in status(settled(start))["failingClusters"]] == [
        "Refused",
        "ClusterUnavailable",
    ]


def test_masked_clusters_are_not_counted() -> None:
    config = scoring_config(("c1", "cpu_score"))
    end = settled(world(config=config, scores=(published("c1", failing=("Scored", "X")),)))
    assert status(end)["clusters"] == {"desired": 4, "distributed": 4, "scoring": 0, "failing": 0}


def test_scores_that_are_metrics_only_are_not_waited_for() -> None:
    obj = scorer(scoreDestination="None")
    end = settled(world(scorers=(obj,)))
    assert condition(end.scorers[0], "Scoring")[:2] == ("Unknown", "NotPublished")


UNREACHABLE = ProbeResult(ProbeFailure("Unreachable", "no such host"))
NOBODY_SAYS = (
    "Unknown",
    "Unreachable",
    (
        "no such host; distributed nevertheless: managed clusters may reach an Internal scorer that"
        " the hub can't"
    ),
)
EXPIRED = "2026-11-20T09:00:00Z"


@pytest.mark.parametrize(
    ("scores", "health", "healthy", "ready"),
    [
        ((), "Unknown", NOBODY_SAYS, ("True", "Distributed")),
        (
            (published("c1", "inner"),),
            "Active",
            ("True", "AgentsReachIt", "the hub can't reach it; agents of 1 managed cluster can"),
            ("True", "Distributed"),
        ),
        (
            (published("c1", "inner"), published("c2", "inner", failing=("Scored", "X"))),
            "Active",
            ("True", "AgentsReachIt", "the hub can't reach it; agents of 1 managed cluster can"),
            ("True", "PartlyScoring"),
        ),
        (
            (published("c1", "inner", failing=("Published", "X"), until=EXPIRED),),
            "Unknown",
            NOBODY_SAYS,
            ("False", "NoClusterScores"),
        ),
        (
            (published("c1", "inner", failing=("Scored", "Refused")),),
            "Inactive",
            (
                "False",
                "AgentsFail",
                (
                    "neither the hub nor the agents of 1 managed cluster get scores from it: see"
                    " failingClusters"
                ),
            ),
            ("False", "AgentsFail"),
        ),
    ],
)
def test_the_agents_judge_an_api_that_only_clusters_reach(
    scores: tuple[Any, ...], health: str, healthy: tuple[str, str, str], ready: tuple[str, str]
) -> None:
    obj = scorer("inner", mode="None", location="Internal", scoring={"params": {"name": "inner"}})
    start = world(scorers=(obj,), probes={target(obj): UNREACHABLE}, scores=scores)
    end = settled(start)
    assert status(end)["healthStatus"] == health
    assert condition(end.scorers[0], "Healthy") == healthy
    assert condition(end.scorers[0], "Ready")[:2] == ready
    assert condition(end.scorers[0], "Distributed")[:2] == ("True", "Distributed")
    assert condition(end.scorers[0], "ConfigSynced")[:2] == ("True", "SyncDisabled")
    assert told(end) == list(FIVE)
    assert json.loads(summaries_text(end.works[0])), "it stays distributed"
    assert planned(replace(end, probes={}), now=LATER) == []


def deleted(start: World, *, now: str = NOW) -> list[str]:
    return [
        f"{change.namespace}/{change.name}"
        for change in planned(start, now=now)
        if change.kind == ADD_ON_PLACEMENT_SCORE and isinstance(change, Delete)
    ]


def test_the_hub_deletes_expired_scores_that_nobody_is_told_to_publish() -> None:
    scores = (
        published("c1", "old_score", until=EXPIRED),
        published("gone", "cpu_score", until=EXPIRED),
        published("c2", "never_scored", until=""),
    )
    start = world(scores=scores)
    assert deleted(start) == ["c1/old-score", "c2/never-scored", "gone/cpu-score"]
    assert settled(start).scores == ()


def test_a_successor_of_an_orphaned_score_is_not_deleted_in_its_place() -> None:
    start = world(scores=(published("c1", "old_score", until=EXPIRED),))
    gone = [each for each in planned(start) if each.kind == ADD_ON_PLACEMENT_SCORE]
    assert gone == [
        Delete(ADD_ON_PLACEMENT_SCORE, "old-score", "c1", uid="c1-old_score", resource_version="7")
    ]


def test_it_leaves_alone_what_an_agent_may_still_own() -> None:
    fresh = published("c1", "old_score")
    young = published("c2", "new_score", until="")
    young["metadata"]["creationTimestamp"] = "2026-11-20T09:58:00Z"
    expected = published("c3", until=EXPIRED)
    start = world(scores=(fresh, young, expected))
    assert deleted(start) == []
    assert deleted(start, now="2026-11-20T13:00:00Z") == ["c1/old-score", "c2/new-score"]


def test_without_a_config_only_expired_scores_go_and_with_a_broken_one_none() -> None:
    scores = (published("c1"), published("c2", until=EXPIRED))
    assert deleted(world(scores=scores, config=None)) == ["c2/cpu-score"]
    broken = scoring_config(masks=[{"clusterName": "c1"}])
    assert deleted(world(scores=scores, config=broken)) == []


def test_held_clusters_are_not_written_to_and_still_told_of() -> None:
    start = world(config=scoring_config(finalizers=[FINALIZER]))
    held = replace(start, held=frozenset({"c1"}), refusals={"c1": "forbidden"})
    assert "c1" not in {c.namespace for c in planned(held) if c.kind == MANIFEST_WORK}
    end = after(held, planned(held))
    end = after(end, planned(end))
    assert condition(end.config, "Ready")[1:] == ("WriteRefused", "c1: forbidden")


def test_unknown_fields_of_the_apis_config_are_named() -> None:
    probe = replace(answer(), unknown=("source.quary",))
    obj = scorer()
    end = settled(world(probes={target(obj): probe}))
    assert "source.quary" in condition(end.scorers[0], "ConfigSynced")[2]


cluster_names = st.sampled_from(["c0", "c1", "c2", "c3", "zz"])
score_names = st.sampled_from(["a_score", "b_score", "gone_score"])
until = st.sampled_from([EXPIRED, "2026-11-20T12:00:00Z", ""])
failing = st.none() | st.just(("SourceFetched", "QueryRejected")) | st.just(("Scored", "TimedOut"))


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """A fleet in any state: labels, add-ons, choices, masks, overrides, scores old and new."""
    scorers = tuple(
        scorer(f"{name}", url=f"http://{name}/config", location=draw(places))
        for name in draw(st.sets(st.sampled_from(["a", "b"])))
    )
    probes = {target(obj): answer(f"{obj['metadata']['name']}_score") for obj in scorers}
    clusters = tuple(
        draw(st.sampled_from([cluster(name, region=region), unavailable(cluster(name))]))
        for name, region in zip(
            ("c0", "c1", "c2"), draw(st.tuples(regions, regions, regions)), strict=True
        )
    )
    add_ons = tuple(add_on(name) for name in draw(st.sets(cluster_names)) if name != "zz")
    written = draw(
        st.dictionaries(st.tuples(cluster_names, score_names), st.tuples(until, failing))
    )
    spec = draw(
        st.fixed_dictionaries(
            {},
            optional={
                "clusterSelector": st.sampled_from([{}, EU, NOT_EU]),
                "sourceOverrides": st.lists(overrides, max_size=3),
            },
        )
    )
    masks = draw(st.lists(st.tuples(cluster_names, score_names), max_size=3))
    return World(
        scorers=scorers,
        config=draw(st.sampled_from([None, scoring_config(*masks, **spec)])),
        clusters=clusters,
        add_ons=add_ons,
        scores=tuple(
            published(where, name, until=valid, failing=why)
            for (where, name), (valid, why) in written.items()
        ),
        probes=probes,
    )


places = st.sampled_from(["Internal", "External"])
regions = st.sampled_from(["eu", "us"])
overrides = st.sampled_from(
    [
        {"clusterName": "c0", "sourceHost": "http://near"},
        {"clusterName": "c1", "scoreName": "a_score", "sourceHost": "http://other"},
        {"clusterSelector": EU, "sourceHost": "http://eu"},
    ]
)


@given(start=worlds())
def test_any_fleet_settles_and_its_counts_add_up(start: World) -> None:
    end = settled(start)
    assert settled(end) == end
    sent = {
        work["metadata"]["namespace"]: {s["scoreName"] for s in json.loads(summaries_text(work))}
        for work in end.works
    }
    equipped = {obj["metadata"]["namespace"] for obj in end.add_ons or ()}
    assert sent.keys() <= equipped & {obj["metadata"]["name"] for obj in end.clusters}
    for obj in end.scorers:
        told_of = obj["status"]
        name = told_of["scoreName"]
        where = {cluster for cluster, names in sent.items() if name in names}
        counts = told_of["clusters"]
        assert counts["desired"] == counts["distributed"] == len(where)
        assert counts["scoring"] + counts["failing"] <= counts["desired"]
        named = [each["name"] for each in told_of.get("failingClusters", [])]
        assert (len(named), set(named) <= where) == (counts["failing"], True)
        assert named == sorted(named)


@given(start=worlds(), later=worlds())
def test_works_follow_from_the_objects_alone_and_from_no_probe(start: World, later: World) -> None:
    for world_ in (start, settled(start)):
        probes = dict.fromkeys(world_.probes, ProbeResult(ProbeFailure("TimedOut", "slow")))
        assert patches(world_) == patches(replace(world_, probes={}))
        assert patches(world_) == patches(replace(world_, probes=probes | dict(later.probes)))


def patches(start: World) -> list[Change]:
    """Return what changes the works that exist; a new controller creates empty ones as well."""
    return [c for c in planned(start) if c.kind == MANIFEST_WORK and not isinstance(c, Create)]


@given(start=worlds())
def test_a_score_is_deleted_exactly_if_it_has_expired_and_nobody_is_told_to_publish_it(
    start: World,
) -> None:
    end = settled(start)
    wanted = {
        (work["metadata"]["namespace"], each["scoreName"].replace("_", "-"))
        for work in end.works
        for each in json.loads(summaries_text(work))
    }
    for obj in start.scores:
        metadata = obj["metadata"]
        dead = obj["status"].get("validUntil", EXPIRED) <= NOW
        stays = not dead or (metadata["namespace"], metadata["name"]) in wanted
        assert (obj in end.scores) == stays


def reach(*scores: Object) -> str:
    end = settled(world(scores=scores))
    return condition(end.scorers[0], "Scoring")[2].partition("; reachable from ")[2]


def test_an_api_that_some_clusters_can_not_reach_is_named_with_who_can() -> None:
    cut_off = published("c2", failing=("Scored", "Unreachable"))
    expose = "expose it at an address that the hub and all managed clusters reach, or run one on"
    assert reach(published("c1"), cut_off).startswith(f"the hub; c1, not from c2: {expose}")
    assert reach(cut_off).startswith(f"the hub, not from c2: {expose}")


@pytest.mark.parametrize("stage", [("SourceFetched", "Unreachable"), ("Scored", "ServerError")])
def test_a_source_or_an_answer_that_fails_says_nothing_of_the_reach(stage: tuple[str, str]) -> None:
    assert reach(published("c1"), published("c2", failing=stage)) == ""
