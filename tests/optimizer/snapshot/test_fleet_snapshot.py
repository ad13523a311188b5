from copy import deepcopy
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsf.kube.port import Object
from optimizer.domain.fleet import Fleet, FleetLimit, Objective, Supply, TopologySpread
from optimizer.domain.settings import OptimizerSettings
from optimizer.domain.solution import Decision
from optimizer.model.formulate import formulate, too_large
from optimizer.model.rules import violations
from optimizer.snapshot.annotations import PREFIX
from optimizer.snapshot.observation import Observation
from optimizer.wire.base import RequestPart
from optimizer.wire.object_specs import ClusterSpec, PolicySpec, WorkloadSpec
from optimizer.wire.request import OptimizeRequest
from tests.house.marker import MARKER, WORDS, unquoted
from tests.optimizer.build import PERFORMANCE, guide, named, policy, request, score, workload
from tests.optimizer.build import read_fleet as read
from tests.optimizer.inventoried_nodes import GPU, MIG, inventory, node


def reasons(fleet: Fleet) -> set[str]:
    return {issue.reason for issue in fleet.issues}


def with_scores(*scores: Object) -> Observation:
    return replace(guide(), scores=scores)


def test_the_guides_fleet_is_read_without_a_gap() -> None:
    fleet = read(guide())
    assert fleet.issues == ()
    assert fleet.scores["performance"] == {
        (cluster, *pair): value
        for cluster in ("worker01", "worker02")
        for pair, value in PERFORMANCE.items()
    }
    assert [len(cluster.candidates) for cluster in fleet.clusters] == [3, 3]


def test_policies_keep_the_order_of_the_request() -> None:
    candidates = read(guide()).clusters[0].candidates
    assert [candidate.supplies[0].device for candidate in candidates] == [
        "2g.24gb",
        "3g.48gb",
        "all",
    ]


def test_a_cluster_without_the_score_object_is_an_issue() -> None:
    fleet = read(with_scores(score("worker01", "performance", named(PERFORMANCE))))
    assert [(issue.reason, issue.cluster) for issue in fleet.issues] == [
        ("MissingScoreObject", "worker02")
    ]
    assert {cluster for cluster, _, _ in fleet.scores["performance"]} == {"worker01"}


@pytest.mark.parametrize(
    ("valid_until", "usable"),
    [
        (None, True),
        ("2026-11-20T12:00:01Z", True),
        ("2026-11-20T12:00:00Z", False),
        ("2026-11-20T11:00:00Z", False),
        ("2026-11-20T21:00:01+09:00", True),
        ("2026-11-20T12:00:01", False),
        ("tomorrow", False),
    ],
)
def test_scores_count_until_they_expire(valid_until: str | None, usable: bool) -> None:
    entries = named(PERFORMANCE)
    fleet = read(
        with_scores(
            score("worker01", "performance", entries, valid_until),
            score("worker02", "performance", entries),
        )
    )
    assert (("worker01", "app01", "all") in fleet.scores["performance"]) is usable
    assert (reasons(fleet) == {"ExpiredScore"}) is not usable


def test_a_missing_entry_is_an_issue_of_its_pair_alone() -> None:
    entries = named({key: value for key, value in PERFORMANCE.items() if key != ("app01", "all")})
    fleet = read(
        with_scores(
            score("worker01", "performance", entries),
            score("worker02", "performance", named(PERFORMANCE)),
        )
    )
    (issue,) = fleet.issues
    assert (issue.reason, issue.cluster, issue.device) == ("MissingScore", "worker01", "all")
    assert "AddOnPlacementScore performance has no entry" in issue.message
    assert "app01;all" in issue.message
    assert ("worker01", "app02", "all") in fleet.scores["performance"]


def test_a_score_of_a_device_that_the_pods_do_not_name_is_not_missing() -> None:
    of_app02 = named({key: value for key, value in PERFORMANCE.items() if key[0] == "app02"})
    container = {"name": "a", "resources": {"requests": {MIG: "2"}}}
    pod = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [container]}}
    guided = with_scores(*(score(f"worker0{n}", "performance", of_app02) for n in (1, 2)))
    one, *others = guided.workloads
    bound = deepcopy(one)
    bound["spec"]["manifestWorkTemplate"]["workload"]["manifests"] = [pod]
    devices = [node({GPU: 1, MIG: 2, "nvidia.com/mig-2g.24gb": 3})]

    def missing(first: Object) -> set[tuple[str, str]]:
        observation = replace(
            guided,
            workloads=(first, *others),
            inventories=tuple(inventory(f"worker0{n}", devices) for n in (1, 2)),
        )
        found = [item for item in read(observation).issues if item.reason == "MissingScore"]
        assert all('"app01;' in item.message for item in found)
        return {(item.cluster, item.device) for item in found}

    assert missing(bound) == {("worker01", "3g.48gb"), ("worker02", "3g.48gb")}
    assert missing(one) > missing(bound)


def test_many_missing_entries_are_counted_not_all_named() -> None:
    names = [f"w{index}" for index in range(25)]
    workloads = tuple(workload(name, name, placement=name) for name in names)
    fleet = read(
        replace(guide(["worker01"]), workloads=workloads),
        request("performance", ["worker01"], names),
    )
    of_whole = [issue.message for issue in fleet.issues if issue.device == "all"]
    assert len(of_whole) == 21
    assert of_whole[-1] == "cluster worker01: 5 more apps have no usable entry for device all"


def test_entries_of_another_form_are_one_gap_that_shows_one_of_them() -> None:
    other = score("worker01", "performance", {"app01/all": 1, "app02/all": 2})
    fleet = read(with_scores(other, score("worker02", "performance", named(PERFORMANCE))))
    (issue,) = fleet.issues
    assert (issue.reason, issue.cluster) == ("WrongScoreFormat", "worker01")
    assert "${app};${device}" in issue.message
    assert '"app01/all"' in issue.message


def test_a_missing_score_has_the_stated_value() -> None:
    fleet = read(with_scores(), settings=OptimizerSettings(missing_score=7.5))
    assert set(fleet.scores["performance"].values()) == {7.5}
    assert reasons(fleet) == {"MissingScoreObject"}


def test_an_entry_without_an_integer_value_is_missing() -> None:
    entries = {**named(PERFORMANCE), "app01;all": "80", "app02;all": True}
    fleet = read(
        with_scores(
            score("worker01", "performance", entries),
            score("worker02", "performance", named(PERFORMANCE)),
        )
    )
    assert [issue.reason for issue in fleet.issues] == ["MissingScore", "MissingScore"]


def test_two_entries_of_one_name_are_ambiguous() -> None:
    asked = request(
        preference={
            "addonPlacementScore": "performance",
            "scoreDimensionFormat": "${node};${app};${device}",
        }
    )
    entries = [("n1;app01;all", 1), ("n1;app01;all", 2), ("n1;app02;all", 3), ("n2;app02;all", 2)]
    observation = replace(guide(["worker01"]), scores=(score("worker01", "performance", entries),))
    asked = asked.model_copy(update={"clusters": asked.clusters[:1]})
    fleet = read(observation, asked)
    ambiguous = [issue for issue in fleet.issues if issue.reason == "AmbiguousScore"]
    assert [issue.device for issue in ambiguous] == ["all"]
    assert fleet.scores[asked.preference.key] == {("worker01", "app02", "all"): 3}


def test_a_format_of_known_placeholders_names_entries_whatever_they_contain() -> None:
    observation = replace(
        guide(["worker01"]),
        workloads=(workload("w", "my-app"),),
        policies=(policy("p", "3g-x", 2),),
        scores=(score("worker01", "performance", {"my-app-3g-x": 5}),),
    )
    asked = OptimizeRequest.model_validate(
        {
            "namespace": "default",
            "clusters": [{"name": "worker01", "availablePolicies": [{"name": "p"}]}],
            "targetWorkloads": [{"name": "w"}],
            "preference": {
                "addonPlacementScore": "performance",
                "scoreDimensionFormat": "${app}-${device}",
            },
        }
    )
    assert read(observation, asked).scores[asked.preference.key] == {
        ("worker01", "my-app", "3g-x"): 5
    }


def test_a_policy_that_says_nothing_usable_is_an_issue_and_no_candidate() -> None:
    observation = guide()
    policies = (policy("2g.24gb-worker01", amount="many"), *observation.policies[1:])
    fleet = read(replace(observation, policies=policies))
    assert [(issue.reason, issue.policy) for issue in fleet.issues] == [
        ("InvalidSupply", "2g.24gb-worker01")
    ]
    assert len(fleet.clusters[0].candidates) == 2


def test_workloads_that_share_a_placement_are_all_left_out() -> None:
    both = (workload("mwrs-app01", "app01", 2, "one"), workload("mwrs-app02", "app02", 2, "one"))
    fleet = read(replace(guide(), workloads=both))
    assert fleet.workloads == ()
    assert [(issue.reason, issue.workload) for issue in fleet.issues] == [
        ("SharedPlacement", "mwrs-app01"),
        ("SharedPlacement", "mwrs-app02"),
    ]


def test_the_placement_that_workloads_share_is_quoted() -> None:
    both = [workload(f"mwrs-{app}", app, 2, "one") for app in ("app01", "app02")]
    for item in both:
        item["spec"]["placementRefs"] = [{"name": MARKER}]
    issues = read(replace(guide(), workloads=tuple(both))).issues
    assert [item.reason for item in issues] == ["SharedPlacement", "SharedPlacement"]
    assert all(WORDS in item.message and not unquoted(item.message) for item in issues)


def annotate(obj: Object, **texts: str) -> Object:
    """The object with annotations of the optimizer's, named in Python's way."""
    annotations = {PREFIX + key.replace("_", "-"): text for key, text in texts.items()}
    return {**obj, "metadata": {**obj["metadata"], "annotations": annotations}}


def annotated(**texts: str) -> Observation:
    observation = guide()
    first, *others = observation.workloads
    return replace(observation, workloads=(annotate(first, **texts), *others))


def with_first_policy(changed: Object) -> Observation:
    observation = guide()
    return replace(observation, policies=(changed, *observation.policies[1:]))


def test_annotations_state_the_constraints_of_a_workload() -> None:
    observation = annotated(
        replicas="2",
        priority="-3",
        requests="cpu=500m,memory=16Gi",
        spread="topology.kubernetes.io/zone=1",
        spread_group="pair",
        clusters="worker01, worker02",
        excluded_clusters="worker03",
        affinity="gpu in (a,b)",
        anti_affinity="!gpu",
        workload_affinity="app=app02",
        workload_anti_affinity="app=app03",
        minimum_score="12.5",
        move_cost="7",
        uses="power=300",
    )
    asked = read(observation).workloads[0]
    assert (asked.replicas, asked.priority, asked.minimum_score, asked.move_cost) == (
        2,
        -3,
        12.5,
        7.0,
    )
    assert asked.requests == (("cpu", 0.5), ("memory", 16 * 2.0**30))
    assert asked.spread == (TopologySpread("topology.kubernetes.io/zone", 1, "pair"),)
    assert (asked.clusters, asked.excluded_clusters) == (("worker01", "worker02"), ("worker03",))
    assert (asked.affinity, asked.anti_affinity) == ("gpu in (a,b)", "!gpu")
    assert (asked.workload_affinity, asked.workload_anti_affinity) == ("app=app02", "app=app03")
    assert asked.uses == (("power", 300.0),)


def test_what_the_request_says_wins() -> None:
    constraints = {"name": "mwrs-app01", "replicas": 3, "requests": {"cpu": "2"}, "moveCost": 0}
    fleet = read(
        annotated(replicas="2", requests="cpu=9", move_cost="5", priority="4"),
        request(targetWorkloads=[constraints]),
    )
    (asked,) = fleet.workloads
    assert (asked.replicas, asked.requests, asked.move_cost) == (3, (("cpu", 2.0),), 0.0)
    assert asked.priority == 4


@pytest.mark.parametrize(
    ("annotation", "text"),
    [
        ("replicas", "0"),
        ("replicas", "many"),
        ("requests", "cpu"),
        ("requests", "cpu=much"),
        ("requests", "cpu=1,cpu=2"),
        ("requests", "gpu=1"),
        ("spread", "zone=0"),
        ("affinity", "a in ("),
        ("clusters", "Not A Name"),
        ("move_cost", "-1"),
        ("minimum_score", "nan"),
    ],
)
def test_a_constraint_that_cannot_be_read_leaves_the_workload_out(
    annotation: str, text: str
) -> None:
    fleet = read(annotated(**{annotation: text}))
    (issue,) = fleet.issues
    assert (issue.reason, issue.workload) == ("InvalidRequest", "mwrs-app01")
    assert annotation.replace("_", "-") in issue.message
    assert [item.name for item in fleet.workloads] == ["mwrs-app02"]


def test_a_policy_may_supply_several_devices_and_kinds() -> None:
    mixed = annotate(
        policy("2g.24gb-worker01"),
        supplies="gpu/3g.48gb=1,gpu/2g.24gb=2,nvidia.com/gpu=1,cpu=8",
        change_cost="4",
        uses="power=250",
    )
    mixed["metadata"]["labels"] = {PREFIX + "pool": "front"}
    found = read(with_first_policy(mixed)).clusters[0].candidates[0]
    assert found.supplies == (
        Supply("gpu", "3g.48gb", 1),
        Supply("gpu", "2g.24gb", 2),
        Supply("nvidia.com/gpu", "", 1),
        Supply("cpu", "", 8),
    )
    assert (found.pool, found.cost, found.uses) == ("front", 4.0, (("power", 250.0),))


def test_a_policy_of_another_cluster_is_an_issue_there_alone() -> None:
    theirs = annotate(policy("2g.24gb-worker01", "2g.24gb", 3), cluster="worker02")
    fleet = read(with_first_policy(theirs))
    assert [(issue.reason, issue.policy, issue.cluster) for issue in fleet.issues] == [
        ("PolicyOfAnotherCluster", "2g.24gb-worker01", "worker01")
    ]
    assert len(fleet.clusters[0].candidates) == 2


def test_a_cluster_has_what_its_status_says_unless_the_annotation_says_otherwise() -> None:
    observation = guide()
    first, second = observation.managed_clusters
    first = {**first, "status": {"allocatable": {"cpu": "16", "memory": "64Gi"}}}
    first = annotate(first, allocatable="cpu=8,gpu/all=2")
    second = {**second, "status": {"allocatable": {"cpu": "lots"}}}
    asking = annotated(requests="cpu=1,memory=1Gi").workloads
    fleet = read(replace(observation, managed_clusters=(first, second), workloads=asking))
    assert set(fleet.clusters[0].base) == {
        Supply("cpu", "", 8),
        Supply("gpu", "all", 2),
        Supply("memory", "", 64 * 2.0**30),
    }
    assert fleet.clusters[1].base == ()
    assert [(issue.reason, issue.cluster) for issue in fleet.issues] == [
        ("InvalidAllocatable", "worker02")
    ]


def test_a_kind_that_nobody_supplies_is_an_issue() -> None:
    fleet = read(annotated(requests="tpu=1"))
    (issue,) = fleet.issues
    assert (issue.reason, issue.workload) == ("UnknownKind", "mwrs-app01")
    assert "there is gpu" in issue.message


def test_an_annotation_that_is_not_known_is_an_issue_and_nothing_else() -> None:
    fleet = read(annotated(replica="2"))
    (issue,) = fleet.issues
    assert (issue.reason, issue.workload) == ("UnknownAnnotation", "")
    assert PREFIX + "replica" in issue.message
    assert len(fleet.workloads) == 2


def test_several_scores_and_limits_are_read_by_name() -> None:
    asked = request(
        objectives=[{"addonPlacementScore": "power", "weight": 0.5, "invert": True}],
        limits=[
            {"name": "energy", "maximum": 100, "score": {"addonPlacementScore": "power"}},
            {"name": "watts", "maximum": 500, "uses": "power", "per": "site"},
        ],
    )
    fleet = read(guide(), asked)
    assert fleet.objectives == (Objective("performance"), Objective("power", 0.5, invert=True))
    assert fleet.limits == (
        FleetLimit("energy", 100.0, score="power"),
        FleetLimit("watts", 500.0, uses="power", per="site"),
    )
    assert set(fleet.scores) == {"performance", "power"}


def test_a_request_may_state_what_a_missing_score_is_worth() -> None:
    fleet = read(with_scores(), request(missingScore=3))
    assert set(fleet.scores["performance"].values()) == {3.0}
    stated = OptimizerSettings(missing_score=7.5)
    assert read(with_scores(), request(missingScore="forbid"), stated).scores["performance"] == {}


def test_a_score_that_only_a_limit_counts_is_never_made_up() -> None:
    cost = {"name": "energy", "maximum": 1, "score": {"addonPlacementScore": "cost"}}
    fleet = read(guide(), request(limits=[cost], missingScore=3))
    assert fleet.scores["cost"] == {}
    assert "MissingScoreObject" in reasons(fleet)


def test_labels_and_kinds_that_nobody_asks_for_are_left_out() -> None:
    observation = annotated(spread="zone=1")
    first, second = observation.managed_clusters
    first = {**first, "status": {"allocatable": {"cpu": "16"}}}
    first["metadata"] = {**first["metadata"], "labels": {"zone": "a", "feature": "available"}}
    cluster = read(replace(observation, managed_clusters=(first, second))).clusters[0]
    assert (cluster.labels, cluster.base) == ({"zone": "a"}, ())
    near = read(annotated(workload_affinity="app=app02")).workloads
    assert [item.labels for item in near] == [{"app": "app01"}, {"app": "app02"}]
    assert [item.labels for item in read(guide()).workloads] == [{}, {}]


def test_what_has_no_effect_is_an_issue_and_nothing_else() -> None:
    asked = request(limits=[{"name": "cap", "maximum": 1, "uses": "watts", "per": "sight"}])
    observation = annotated(spread="zone=1", clusters="worker01,worker09", uses="power=1")
    fleet = read(observation, asked)
    assert {issue.reason: issue.message for issue in fleet.issues} == {
        "UnusedLimit": "limit cap counts nothing: no workload and no policy uses watts;"
        " there is power",
        "UnknownLabel": "spread of mwrs-app01: no cluster of the request has the label zone",
        "ClusterNotInRequest": "workload mwrs-app01 may run on worker09, which the request does"
        " not name",
    }
    assert len(fleet.issues) == 4
    assert len(fleet.workloads) == 2


@pytest.mark.parametrize("wanted", ["app=app09", "app=app01"])
def test_an_affinity_that_no_workload_meets_is_named(wanted: str) -> None:
    (issue,) = read(annotated(workload_affinity=wanted), request()).issues
    assert (issue.reason, issue.workload) == ("UnknownWorkloads", "mwrs-app01")
    assert issue.message == (
        f'workload mwrs-app01 must run with a workload that matches "{wanted}",'
        " and no other workload of the request does"
    )


def test_a_request_that_does_not_fit_into_memory_is_refused() -> None:
    refused = too_large(read(guide()), 11)
    assert refused is not None
    assert (refused.status, refused.reason) == (422, "TooManyPlaces")
    assert "2 workloads on 6 devices and kinds of clusters are 12 places" in refused.detail
    assert too_large(read(guide()), 12) is None


@pytest.mark.parametrize(
    "constraint",
    [
        {"replicas": "2"},
        {"spread": "zone=1"},
        {"workload_affinity": "app=app02"},
        {"workload_anti_affinity": "app=app02"},
        {"requests": "cpu=1"},
        {"uses": "power=300"},
    ],
)
def test_assignments_in_further_rules_count_for_their_memory(constraint: dict[str, str]) -> None:
    asked = request(limits=[{"name": "power", "maximum": 500, "uses": "power"}])
    fleet = read(annotated(**constraint), asked)
    refused = too_large(fleet, 35)
    assert refused is not None
    assert "12 places, which count as 36 for limits" in refused.detail
    assert too_large(fleet, 36) is None


TEXTS = st.one_of(
    st.text(max_size=12),
    st.sampled_from(
        ["gpu/3g=1", "cpu=4", "zone=1", "a in (b)", "1", "-1", "1e9", "all", "3g.48gb"]
    ),
)
VALUES = st.recursive(
    st.one_of(st.none(), st.integers(-200, 200), TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(TEXTS, inner, max_size=2)),
    max_leaves=4,
)


def odd(draw: st.DrawFn, obj: Object, labels: tuple[str, ...], model: type[RequestPart]) -> Object:
    """The object with labels and annotations of any text, as the API server lets through."""
    keys = [PREFIX + name.replace("_", "-") for name in model.model_fields]
    texts = st.dictionaries(st.sampled_from(keys), TEXTS, max_size=3)
    named = st.dictionaries(st.sampled_from(labels), TEXTS, max_size=len(labels))
    changed = {**obj["metadata"]["labels"], **draw(named)}
    return {**obj, "metadata": {**obj["metadata"], "labels": changed, "annotations": draw(texts)}}


@st.composite
def observations(draw: st.DrawFn) -> Observation:
    observation = guide(["worker01"])
    (cluster,) = observation.managed_clusters
    quantities = draw(st.dictionaries(st.sampled_from(["cpu", "memory"]), TEXTS, max_size=2))
    cluster = {**cluster, "status": {"allocatable": quantities}}
    supply = ("resource-supply-kind", "resource-supply-amount", "resource-supply-device")
    asked = ("app", "resource-request-kind", "resource-request-amount")
    entries = st.lists(st.fixed_dictionaries({"name": VALUES, "value": VALUES}), max_size=3)
    (usual,) = (item for item in observation.scores if item["metadata"]["name"] == "performance")
    status = {"scores": draw(entries), "validUntil": draw(VALUES)}
    return replace(
        observation,
        managed_clusters=(odd(draw, cluster, ("zone",), ClusterSpec),),
        policies=tuple(odd(draw, item, supply, PolicySpec) for item in observation.policies),
        workloads=tuple(odd(draw, item, asked, WorkloadSpec) for item in observation.workloads),
        scores=(draw(st.sampled_from([usual, {**usual, "status": status}])),),
    )


@given(observations())
def test_whatever_objects_say_is_read_or_named_and_never_raised(observation: Observation) -> None:
    asked = request("performance", ["worker01"])
    fleet = read(observation, asked)
    assert violations(formulate(fleet), Decision()) == ()
    named_ = {issue.workload for issue in fleet.issues}
    known = {item.name for item in fleet.workloads}
    assert {item.name for item in asked.target_workloads} <= named_ | known
