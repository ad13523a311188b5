import re

import yaml

from dsf.api.names import GENERATED_LABEL
from dsf.api.optimization import Optimization
from optimizer.domain.fleet import Cluster, Fleet, Selector, Workload
from optimizer.domain.solution import Assignment, Decision, PolicyEnforcement
from optimizer.plan.manifests import generated_name, manifests

CLAIM = "policy-watcher-claim"


def _fleet(selector: Selector) -> Fleet:
    return Fleet(
        "default",
        (Cluster("worker01", selector, ()),),
        (Workload("mwrs-app01", "app01", "gpu", 2, "app01-placement"),),
        {},
        (),
    )


DECISION = Decision(
    (PolicyEnforcement("worker01", "policy-3g"),),
    (Assignment("mwrs-app01", "worker01", "3g.48gb"),),
)


def test_a_decision_becomes_the_contracts_objects() -> None:
    objects = manifests(_fleet(Selector("worker01", "cluster-name")), DECISION, claim_name=CLAIM)
    expected = f"""
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata:
  name: {objects[0]["metadata"]["name"]}
  namespace: default
  labels: {{{GENERATED_LABEL}: "true"}}
spec:
  numberOfClusters: 1
  predicates:
    - requiredClusterSelector:
        labelSelector:
          matchLabels: {{cluster-name: worker01}}
---
apiVersion: policy.open-cluster-management.io/v1
kind: PlacementBinding
metadata:
  name: {objects[1]["metadata"]["name"]}
  namespace: default
  labels: {{{GENERATED_LABEL}: "true"}}
placementRef:
  name: {objects[0]["metadata"]["name"]}
  kind: Placement
  apiGroup: cluster.open-cluster-management.io
subjects:
  - name: policy-3g
    kind: Policy
    apiGroup: policy.open-cluster-management.io
---
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata:
  name: app01-placement
  namespace: default
  labels: {{{GENERATED_LABEL}: "true"}}
spec:
  numberOfClusters: 1
  predicates:
    - requiredClusterSelector:
        labelSelector:
          matchLabels: {{cluster-name: worker01}}
        claimSelector:
          matchExpressions:
            - {{key: {CLAIM}, operator: In, values: [compliant]}}
"""
    assert list(objects) == list(yaml.safe_load_all(expected))


def test_names_carry_the_cluster_and_eight_digits() -> None:
    objects = manifests(_fleet(Selector("worker01", "cluster-name")), DECISION, claim_name=CLAIM)
    assert re.fullmatch(r"placement-worker01-[0-9a-f]{8}", objects[0]["metadata"]["name"])
    assert re.fullmatch(r"binding-worker01-[0-9a-f]{8}", objects[1]["metadata"]["name"])


def test_a_cluster_without_a_label_is_selected_by_its_name() -> None:
    objects = manifests(_fleet(Selector("worker01")), DECISION, claim_name=CLAIM)
    by_name = {"celExpressions": ['managedCluster.metadata.name == "worker01"']}
    for placement in (objects[0], objects[2]):
        (predicate,) = placement["spec"]["predicates"]
        assert predicate["requiredClusterSelector"]["celSelector"] == by_name
        assert "labelSelector" not in predicate["requiredClusterSelector"]


def _replicated(*selectors: Selector, choices: tuple[PolicyEnforcement, ...]) -> list[object]:
    """The predicates of a workload that runs on all of these clusters."""
    fleet = Fleet(
        "default",
        tuple(Cluster(selector.cluster, selector, ()) for selector in selectors),
        (Workload("w", "app", "gpu", 1, "w-placement"),),
        {},
        (),
    )
    places = tuple(Assignment("w", selector.cluster, "d") for selector in selectors)
    objects = manifests(fleet, Decision(choices, places), claim_name=CLAIM)
    (placement,) = [item for item in objects if item["metadata"]["name"] == "w-placement"]
    assert placement["spec"]["numberOfClusters"] == len(selectors)
    return [item["requiredClusterSelector"] for item in placement["spec"]["predicates"]]


READY = {"matchExpressions": [{"key": CLAIM, "operator": "In", "values": ["compliant"]}]}


def test_replicas_are_one_placement_of_all_their_clusters() -> None:
    both = Selector("b", "name"), Selector("a", "name")
    choices = (PolicyEnforcement("a", "p"), PolicyEnforcement("b", "p"))
    among = {"matchExpressions": [{"key": "name", "operator": "In", "values": ["a", "b"]}]}
    assert _replicated(*both, choices=choices) == [{"labelSelector": among, "claimSelector": READY}]


def test_clusters_that_are_selected_in_different_ways_have_a_predicate_each() -> None:
    several = Selector("a", "name"), Selector("b"), Selector("c")
    choices = tuple(PolicyEnforcement(name, "p") for name in "abc")
    by_name = {"celExpressions": ['managedCluster.metadata.name in ["b", "c"]']}
    assert _replicated(*several, choices=choices) == [
        {"labelSelector": {"matchLabels": {"name": "a"}}, "claimSelector": READY},
        {"celSelector": by_name, "claimSelector": READY},
    ]


def test_a_cluster_without_a_policy_need_not_claim_to_be_compliant() -> None:
    both = Selector("a", "name"), Selector("b", "name")
    assert _replicated(*both, choices=(PolicyEnforcement("a", "p"),)) == [
        {"labelSelector": {"matchLabels": {"name": "a"}}, "claimSelector": READY},
        {"labelSelector": {"matchLabels": {"name": "b"}}},
    ]


def test_a_name_depends_on_its_own_choice_alone() -> None:
    name = generated_name(
        "placement", Optimization("default"), PolicyEnforcement("worker01", "policy-3g")
    )
    assert name == generated_name(
        "placement", Optimization("default"), PolicyEnforcement("worker01", "policy-3g")
    )
    assert name != generated_name(
        "placement", Optimization("default"), PolicyEnforcement("worker01", "policy-2g")
    )
    assert name != generated_name(
        "placement", Optimization("other"), PolicyEnforcement("worker01", "policy-3g")
    )
    assert name != generated_name(
        "placement", Optimization("default", "batch"), PolicyEnforcement("worker01", "policy-3g")
    )


def test_long_cluster_names_stay_apart_within_the_length_of_a_label() -> None:
    clusters = [f"{'x' * 62}{end}" for end in "ab"]
    names = {
        generated_name("placement", Optimization("default"), PolicyEnforcement(c, "p"))
        for c in clusters
    }
    assert len(names) == 2
    assert all(len(name) <= 63 for name in names)
