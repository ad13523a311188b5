"""The plan: what it writes, and that it writes nothing once the hub is as users want it."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsf.api.conditions import find
from dsf.api.scoring.scoring_api import ScorerConfig
from dsf.hub.snapshot.registered_scorer import ProbeFailure, ProbeResult
from dsf.hub.snapshot.summaries_work import summaries_text, summaries_work
from dsf.kube.changes import Change, Delete, Patch
from dsf.kube.kinds import DYNAMIC_SCORING_CONFIG, MANIFEST_WORK
from dsf.kube.port import Object
from tests.dsf.hub.builders import (
    HUB,
    LATER,
    NOW,
    World,
    after,
    answer,
    api_config,
    cluster,
    condition,
    leaving,
    planned,
    scorer,
    scoring_config,
    settled,
    target,
)

FINALIZER = "dynamic-scoring.open-cluster-management.io/dynamic-scoring-config-finalizer"


def fleet(*scorers: tuple[Object, ProbeResult | None], **parts: Any) -> World:
    probes = {target(obj): probe for obj, probe in scorers if probe is not None}
    base = World(
        scorers=tuple(obj for obj, _ in scorers),
        config=scoring_config(),
        clusters=(cluster("c1"), cluster("c2")),
        probes=probes,
    )
    return replace(base, **parts)


def distributed(snapshot: World) -> dict[str, list[str]]:
    return {
        work["metadata"]["namespace"]: [s["scoreName"] for s in json.loads(summaries_text(work))]
        for work in snapshot.works
    }


def status_of(snapshot: World, name: str) -> dict[str, Any]:
    (obj,) = [obj for obj in snapshot.scorers if obj["metadata"]["name"] == name]
    return dict(obj)


def test_every_accepted_cluster_gets_the_summaries() -> None:
    clusters = (cluster("c1"), cluster("c2"), cluster("c3", accepted=False), leaving(cluster("c4")))
    end = settled(fleet((scorer(), answer()), clusters=clusters))
    assert distributed(end) == {"c1": ["cpu_score"], "c2": ["cpu_score"]}
    work = next(iter(end.works))
    assert work["metadata"]["name"] == "dynamic-scoring-config-manifestwork"
    namespace, config_map = work["spec"]["workload"]["manifests"]
    assert (namespace["kind"], namespace["metadata"]["name"]) == ("Namespace", "dynamic-scoring")
    assert config_map["kind"] == "ConfigMap"
    assert config_map["metadata"] == {
        "name": "dynamic-scoring-config",
        "namespace": "dynamic-scoring",
    }
    assert work["spec"]["deleteOption"] == {
        "propagationPolicy": "SelectivelyOrphan",
        "selectivelyOrphans": {
            "orphaningRules": [{"resource": "namespaces", "name": "dynamic-scoring"}]
        },
    }


def test_a_good_scorer_says_so() -> None:
    end = settled(fleet((scorer(), answer())))
    obj = status_of(end, "cpu")
    status = obj["status"]
    assert (status["healthStatus"], status["observedGeneration"]) == ("Active", 1)
    assert status["lastSyncedConfig"]["scoring"]["params"]["name"] == "cpu_score"
    assert {c["type"]: (c["status"], c["reason"]) for c in status["conditions"]} == {
        "Ready": ("True", "Distributed"),
        "ConfigSynced": ("True", "Synced"),
        "ConfigConflict": ("False", "NoConflict"),
        "Healthy": ("True", "Healthy"),
        "Distributed": ("True", "Distributed"),
        "Scoring": ("Unknown", "Waiting"),
    }
    assert {c["lastTransitionTime"] for c in status["conditions"]} == {NOW}
    config = end.config
    assert config is not None
    assert (config["status"]["scorers"], config["status"]["clusters"]) == (1, 2)
    assert condition(config, "Ready")[:2] == ("True", "Distributed")
    assert condition(config, "MasksMatched")[:2] == ("True", "AllMatched")


def test_while_works_are_not_yet_there_it_says_distributing() -> None:
    snapshot = fleet((scorer(), answer()), config=scoring_config(finalizers=[FINALIZER]))
    once = after(snapshot, planned(snapshot, now=NOW))
    assert condition(status_of(once, "cpu"), "Distributed")[:2] == ("False", "Distributing")
    assert condition(once.config, "Ready")[:2] == ("False", "Distributing")
    assert once.config is not None
    assert once.config["status"]["clusters"] == 0


def test_masks_keep_a_score_away_and_useless_masks_are_named() -> None:
    config = scoring_config(("c1", "gpu"), ("c9", "gpu"), ("c2", "gpuu"))
    end = settled(
        fleet(
            (scorer(), answer()),
            (scorer("gpu", url="http://gpu/config"), answer("gpu")),
            config=config,
        )
    )
    assert distributed(end) == {"c1": ["cpu_score"], "c2": ["cpu_score", "gpu"]}
    status, reason, message = condition(end.config, "MasksMatched")
    assert (status, reason) == ("False", "NothingMatched")
    assert '"c9"' in message
    assert '"gpuu"' in message
    assert condition(status_of(end, "gpu"), "Distributed")[2].endswith(
        "ManifestWork of 1 managed cluster"
    )


def test_the_older_spelling_of_masks_counts() -> None:
    config = scoring_config(("c1", "cpu_score"))
    config["spec"]["mask"] = config["spec"].pop("masks")
    end = settled(fleet((scorer(), answer()), config=config))
    assert distributed(end) == {"c1": [], "c2": ["cpu_score"]}


def test_a_score_masked_everywhere_is_not_called_ready() -> None:
    config = scoring_config(("c1", "cpu_score"), ("c2", "cpu_score"))
    end = settled(fleet((scorer(), answer()), config=config))
    assert condition(status_of(end, "cpu"), "Ready")[:2] == ("False", "NoClusters")


BAD = {
    "InvalidConfig": ProbeResult(
        config=ProbeFailure("InvalidConfig", "GET u: scoring: Field required")
    ),
    "TimedOut": ProbeResult(ProbeFailure("TimedOut", "slow"), ProbeFailure("TimedOut", "slow")),
    "BadStatus": ProbeResult(
        ProbeFailure("BadStatus", "GET u: answered 503"), answer("bad").config
    ),
}


@pytest.mark.parametrize("reason", BAD)
def test_a_bad_scorer_is_told_and_the_others_go_on(reason: str) -> None:
    bad = scorer("bad", url="http://bad/config")
    end = settled(fleet((scorer(), answer()), (bad, BAD[reason])))
    assert distributed(end) == {"c1": ["cpu_score"], "c2": ["cpu_score"]}
    status, told, message = condition(status_of(end, "bad"), "Ready")
    assert (status, told) == ("False", reason)
    assert message
    assert condition(status_of(end, "cpu"), "Ready")[:2] == ("True", "Distributed")


def test_an_inactive_scorer_is_taken_out_and_put_back() -> None:
    obj = scorer()
    up = settled(fleet((obj, answer())))
    down = settled(replace(up, probes={target(obj): BAD["TimedOut"]}), now=LATER)
    assert distributed(down) == {"c1": [], "c2": []}
    assert status_of(down, "cpu")["status"]["healthStatus"] == "Inactive"
    assert find(status_of(down, "cpu")["status"]["conditions"], "Healthy") == {
        "type": "Healthy",
        "status": "False",
        "reason": "TimedOut",
        "message": "slow; check spec.configURL and that the hub can reach it; if only managed"
        " clusters can, set location Internal and configSyncMode None; not distributed until it"
        " answers",
        "lastTransitionTime": LATER,
        "observedGeneration": 1,
    }
    back = settled(replace(down, probes=up.probes))
    assert [dict(work)["spec"] for work in back.works] == [dict(w)["spec"] for w in up.works]


def test_a_service_name_that_the_hub_can_not_reach_is_named_as_such() -> None:
    obj = scorer(url="http://cpu.scorers.svc:8000/config")
    lost = ProbeFailure("Unreachable", "no such host")
    end = settled(fleet((obj, ProbeResult(lost, lost))))
    assert condition(status_of(end, "cpu"), "Healthy")[2] == (
        "no such host; cpu.scorers.svc is a Service, which only its own cluster reaches: expose it"
        " at an address that the hub and all managed clusters reach, or run one on each managed"
        " cluster with configSyncMode None and location Internal; not distributed until it answers"
    )


@pytest.mark.parametrize(
    ("location", "failure"), [("External", "Unreachable"), ("Internal", "BadStatus")]
)
def test_other_scorers_of_mode_none_are(location: str, failure: str) -> None:
    scoring = {"params": {"name": "inner"}}
    obj = scorer("inner", mode="None", location=location, scoring=scoring)
    end = settled(fleet((obj, ProbeResult(ProbeFailure(failure, "")))))
    assert distributed(end) == {"c1": [], "c2": []}
    assert status_of(end, "inner")["status"]["healthStatus"] == "Inactive"


def test_of_two_scorers_with_one_score_object_the_older_has_it() -> None:
    old = scorer("z-old", url="http://old/config", created="2026-01-01T00:00:00Z")
    young = scorer("a-young", url="http://young/config", created="2026-01-02T00:00:00Z")
    snapshot = fleet((young, answer("a-b")), (old, answer("a_b")))
    end = settled(snapshot)
    assert distributed(end) == {"c1": ["a_b"], "c2": ["a_b"]}
    status, reason, message = condition(status_of(end, "a-young"), "Ready")
    assert (status, reason) == ("False", "ScoreNameTaken")
    assert "z-old" in message
    # The older one's claim outlives its health: scores of two APIs must not take turns.
    sick = settled(
        replace(end, probes={**end.probes, target(old): ProbeResult(BAD["TimedOut"].health, None)})
    )
    assert distributed(sick) == {"c1": [], "c2": []}


def test_conflicts_are_told_in_a_condition() -> None:
    obj = scorer(source={"type": "Prometheus", "params": {"query": "down"}})
    end = settled(fleet((obj, answer())))
    status, reason, message = condition(status_of(end, "cpu"), "ConfigConflict")
    assert (status, reason) == ("True", "APIConfigWins")
    assert "source.params.query: down in spec, up from the API" in message
    assert condition(status_of(end, "cpu"), "Ready")[0] == "True"


def test_a_restart_before_the_first_answers_writes_nothing() -> None:
    inner = scorer("inner", mode="None", location="Internal", scoring={"params": {"name": "i"}})
    sick = scorer("sick", url="http://sick/config")
    end = settled(
        fleet(
            (scorer(), answer()),
            (inner, ProbeResult(ProbeFailure("Unreachable", ""))),
            (sick, BAD["BadStatus"]),
        )
    )
    assert planned(replace(end, probes={}), now=LATER) == []


def test_a_new_scorer_waits_for_its_first_answer() -> None:
    none = scorer("none", mode="None", scoring={"params": {"name": "n"}})
    end = settled(fleet((scorer(), None), (none, None)))
    assert distributed(end) == {"c1": [], "c2": []}
    assert not [obj for obj in end.scorers if "status" in obj]


def test_a_config_that_breaks_later_leaves_the_accepted_one_in_use() -> None:
    obj = scorer()
    end = settled(fleet((obj, answer())))
    broken = settled(replace(end, probes={target(obj): BAD["InvalidConfig"]}))
    assert distributed(broken) == {"c1": ["cpu_score"], "c2": ["cpu_score"]}
    status, reason, message = condition(status_of(broken, "cpu"), "ConfigSynced")
    assert (status, reason) == ("False", "InvalidConfig")
    assert "stays in use" in message


def test_the_accepted_config_of_another_spec_is_not_used() -> None:
    end = settled(fleet((scorer(), answer())))
    (obj,) = end.scorers
    edited = {**obj, "metadata": {**obj["metadata"], "generation": 2}}
    edited["spec"] = {**obj["spec"], "configURL": "http://other/config"}
    probes = {target(edited): BAD["InvalidConfig"]}
    moved = settled(replace(end, scorers=(edited,), probes=probes))
    assert distributed(moved) == {"c1": [], "c2": []}
    assert "lastSyncedConfig" not in status_of(moved, "cpu")["status"]


def test_a_changed_config_url_changes_nothing_before_its_first_answer() -> None:
    """The config that the old host served is not called at the new one."""
    end = settled(fleet((scorer(), answer())))
    (obj,) = end.scorers
    assert obj["status"]["lastSyncedConfigURL"] == obj["spec"]["configURL"]
    moved = {**obj, "metadata": {**obj["metadata"], "generation": 2}}
    moved["spec"] = {**obj["spec"], "configURL": "http://other/config"}
    unasked = settled(replace(end, scorers=(moved,), probes={}))
    assert [*unasked.works] == [*end.works]
    asked = settled(replace(unasked, probes={target(moved): answer()}))
    endpoints = {
        summary["scoringEndpoint"]
        for work in asked.works
        for summary in json.loads(summaries_text(work))
    }
    assert endpoints == {"http://other/scoring"}
    assert status_of(asked, "cpu")["status"]["lastSyncedConfigURL"] == "http://other/config"


def test_what_the_api_no_longer_says_leaves_the_status() -> None:
    obj = scorer()
    end = settled(fleet((obj, answer())))
    shorter = ScorerConfig.model_validate(api_config(params={"query": "up"}))
    changed = settled(replace(end, probes={target(obj): ProbeResult(config=shorter)}))
    source = status_of(changed, "cpu")["status"]["lastSyncedConfig"]["source"]
    assert source["params"] == {"query": "up"}


@pytest.mark.parametrize(
    ("scoring", "message"),
    [
        ({"params": {"model": {"name": "linear"}}}, "parameter model: give text, a number"),
        ({"params": {"model": ["linear"]}}, "parameter model: give text, a number"),
        ({"params": {"prompt": "x" * 1025}}, "parameter prompt: its text has more than 1024"),
        ({"defaultScore": {"value": -101}}, "scoring.defaultScore.value"),
    ],
)
def test_what_no_schema_can_refuse_is_told(scoring: dict[str, Any], message: str) -> None:
    """The schema keeps further parameters as they are; a CRD may be older than a default score."""
    end = settled(fleet((scorer("bad", scoring=scoring), None)))
    status, reason, told = condition(status_of(end, "bad"), "ConfigSynced")
    assert (status, reason) == ("False", "InvalidSpec")
    assert message in told


def test_a_scorer_that_the_schema_would_refuse_is_told_not_probed() -> None:
    end = settled(fleet((scorer(), answer()), (scorer("bad", url="ftp://x/config"), None)))
    status, reason, message = condition(status_of(end, "bad"), "Ready")
    assert (status, reason) == ("False", "InvalidSpec")
    assert "configURL" in message
    assert distributed(end)["c1"] == ["cpu_score"]


def test_a_scorer_being_deleted_is_taken_out_and_not_written_to() -> None:
    end = settled(fleet((scorer(), answer())))
    (obj,) = end.scorers
    gone = settled(replace(end, scorers=(leaving(dict(obj)),)))
    assert distributed(gone) == {"c1": [], "c2": []}
    assert gone.scorers == (leaving(dict(obj)),)


def test_without_a_config_nothing_is_distributed() -> None:
    end = settled(fleet((scorer(), answer())))
    bare = settled(replace(end, config=None))
    assert bare.works == ()
    status, reason, message = condition(status_of(bare, "cpu"), "Ready")
    assert (status, reason) == ("False", "NoScoringConfig")
    assert "dynamic-scoring-config" in message


def test_the_finalizer_stands_before_the_first_work_and_goes_after_the_last() -> None:
    config = scoring_config(finalizers=["another.example/finalizer"])
    snapshot = fleet((scorer(), answer()), config=config)
    first = planned(snapshot, now=NOW)[0]
    assert isinstance(first, Patch)
    assert first.kind == DYNAMIC_SCORING_CONFIG
    assert first.body["metadata"]["finalizers"] == ["another.example/finalizer", FINALIZER]
    end = settled(snapshot)
    deleting = replace(end, config=leaving(dict(end.config or {})))
    removal = planned(deleting, now=NOW)
    assert [type(c) for c in removal if c.kind == MANIFEST_WORK] == [Delete, Delete]
    assert not [c for c in removal if c.kind == DYNAMIC_SCORING_CONFIG]
    gone = settled(deleting)
    assert gone.works == ()
    assert gone.config is not None
    assert gone.config["metadata"]["finalizers"] == ["another.example/finalizer"]


def test_a_failed_delete_keeps_the_finalizer() -> None:
    end = settled(fleet((scorer(), answer())))
    deleting = replace(end, config=leaving(dict(end.config or {})))
    only_first = [c for c in planned(deleting, now=NOW) if c.kind == MANIFEST_WORK][:1]
    half = after(deleting, only_first)
    assert not [c for c in planned(half, now=NOW) if c.kind == DYNAMIC_SCORING_CONFIG]


def test_a_work_that_is_being_deleted_is_waited_for_but_does_not_hold_the_config() -> None:
    end = settled(fleet((scorer(), answer())))
    works = tuple(leaving(dict(work)) for work in end.works)
    waiting = replace(end, works=works)
    assert not [c for c in planned(waiting, now=NOW) if c.kind == MANIFEST_WORK]
    assert settled(replace(waiting, config=leaving(dict(end.config or {})))).config is None


def test_drift_is_repaired() -> None:
    end = settled(fleet((scorer(), answer())))
    edited = summaries_work("c1", "[]", "elsewhere")
    edited["metadata"]["resourceVersion"] = "7"
    edited["spec"]["executor"] = {"subject": {"type": "ServiceAccount"}}
    drifted = replace(end, works=(edited, *end.works[1:]))
    changes = planned(drifted, now=NOW)
    assert [str(c) for c in changes if c.kind == MANIFEST_WORK] == [
        "patch ManifestWork dynamic-scoring-config-manifestwork in c1"
    ]
    assert [dict(w)["spec"] for w in settled(drifted).works] == [dict(w)["spec"] for w in end.works]


def test_what_others_put_on_a_work_stays() -> None:
    end = settled(fleet((scorer(), answer())))
    theirs = dict(end.works[0])
    theirs["metadata"] = {
        **theirs["metadata"],
        "labels": {**theirs["metadata"]["labels"], "team": "x"},
        "finalizers": ["cluster.open-cluster-management.io/manifest-work-cleanup"],
    }
    theirs["status"] = {"conditions": [{"type": "Applied", "status": "True"}]}
    assert planned(replace(end, works=(theirs, *end.works[1:])), now=NOW) == []


def test_refused_writes_are_told_by_cluster() -> None:
    end = settled(fleet((scorer(), answer())))
    partly = replace(end, works=end.works[1:], refusals={"c1": "forbidden", "c2": "of old"})
    told = after(
        partly, [c for c in planned(partly, now=NOW) if c.kind == DYNAMIC_SCORING_CONFIG]
    ).config
    assert condition(told, "Ready") == ("False", "WriteRefused", "c1: forbidden")
    assert told is not None
    assert told["status"]["clusters"] == 1


def test_a_config_that_cannot_be_read_hides_nothing_of_the_scorers() -> None:
    sick, new = scorer("sick"), scorer("new", url="http://new/config", mode="None")
    end = settled(fleet((sick, answer())))
    probes = {**end.probes, target(sick): BAD["BadStatus"], target(new): ProbeResult()}
    broken = {**dict(end.config or {}), "spec": {"masks": [{"clusterName": "c1"}]}}
    held = settled(replace(end, config=broken, scorers=(*end.scorers, new), probes=probes))
    assert held.works == end.works
    told = status_of(held, "sick")
    assert told["status"]["healthStatus"] == "Inactive"
    assert condition(told, "Healthy")[1] == "BadStatus"
    assert told["status"]["clusters"] == status_of(end, "sick")["status"]["clusters"]
    for name in ("sick", "new"):
        state, reason, message = condition(status_of(held, name), "Distributed")
        assert (state, reason) == ("False", "InvalidScoringConfig")
        assert "dynamic-scoring-config" in message
    mended = settled(replace(held, config=scoring_config(finalizers=[FINALIZER])))
    assert distributed(mended) == {"c1": [], "c2": []}


def test_equal_fleets_give_equal_bytes_in_any_order() -> None:
    pairs = [(scorer(n, url=f"http://{n}/config"), answer(n)) for n in ("a", "b", "c")]
    there = settled(fleet(*pairs))
    back = settled(fleet(*reversed(pairs), clusters=(cluster("c2"), cluster("c1"))))
    texts = {summaries_text(work) for work in (*there.works, *back.works)}
    assert len(texts) == 1


names = st.sampled_from(["a", "b_c", "b-c", "d"])
answers = st.one_of(
    st.none(), names.map(answer), st.sampled_from(list(BAD.values())), st.just(ProbeResult())
)


@st.composite
def snapshots(draw: st.DrawFn) -> World:
    count = draw(st.integers(0, 4))
    pairs = [
        (
            scorer(
                f"s{index}",
                url=f"http://s{index}/config",
                mode=draw(st.sampled_from(["Full", "none"])),
                created=draw(st.sampled_from([NOW, LATER])),
                location=draw(st.sampled_from(["Internal", "External"])),
                **draw(st.sampled_from([{}, {"scoring": {"params": {"name": "d"}}}])),
            ),
            draw(answers),
        )
        for index in range(count)
    ]
    clusters = [
        cluster(f"c{i}", accepted=draw(st.booleans())) for i in range(draw(st.integers(0, 4)))
    ]
    masks = draw(st.lists(st.tuples(st.sampled_from(["c0", "c1", "zz"]), names), max_size=4))
    config = draw(
        st.sampled_from(
            [None, scoring_config(*masks), leaving(scoring_config(finalizers=[FINALIZER]))]
        )
    )
    works = [
        {
            **summaries_work(
                f"c{i}", draw(st.sampled_from(["[]", "nonsense", ""])), "dynamic-scoring"
            )
        }
        for i in draw(st.sets(st.integers(0, 6), max_size=4))
    ]
    for work in works:
        work["metadata"] = {**work["metadata"], "resourceVersion": "1"}
    return fleet(*pairs, clusters=tuple(clusters), config=config, works=tuple(works))


def writes(changes: list[Change]) -> set[str]:
    return {str(change) for change in changes}


@given(start=snapshots())
def test_any_fleet_settles_with_each_accepted_cluster_served(start: World) -> None:
    end = settled(start)
    if end.config is None:
        assert end.works == ()
        return
    accepted = {obj["metadata"]["name"] for obj in end.clusters if obj["spec"]["hubAcceptsClient"]}
    sent = distributed(end)
    assert sent.keys() == accepted
    ready = [obj for obj in end.scorers if condition_status(obj, "Ready") == "True"]
    masks = {(m["clusterName"], m["scoreName"]) for m in end.config["spec"]["masks"]}
    for name, scores in sent.items():
        assert len({score.replace("_", "-") for score in scores}) == len(scores)
        assert not {(name, score) for score in scores} & masks
    assert len(ready) == len({score for scores in sent.values() for score in scores})


@given(start=snapshots())
def test_order_of_observation_is_irrelevant(start: World) -> None:
    other = replace(
        start, scorers=start.scorers[::-1], clusters=start.clusters[::-1], works=start.works[::-1]
    )
    assert writes(planned(start, now=NOW)) == writes(planned(other, now=NOW))


def condition_status(obj: Object, type_: str) -> str:
    found = find((obj.get("status") or {}).get("conditions") or [], type_)
    return str(found["status"]) if found else "Unknown"


def test_the_hub_namespace_is_written_to_by_name() -> None:
    changes = planned(fleet((scorer(), answer())), now=NOW)
    assert {c.namespace for c in changes if c.kind != MANIFEST_WORK} == {HUB}
