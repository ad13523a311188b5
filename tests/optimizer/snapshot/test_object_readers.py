import pytest

from optimizer.domain.fleet import CandidatePolicy, NodeLayout, Selector, Supply, Workload
from optimizer.domain.issue import Issue
from optimizer.snapshot.annotations import PREFIX
from optimizer.snapshot.object_readers import cluster_selectors, read_policy, read_workload
from tests.optimizer.build import managed_cluster, policy, workload


def test_a_supply_is_read_from_the_policy_labels() -> None:
    assert read_policy(policy("p", "3g.48gb", 2)) == CandidatePolicy(
        "p", (Supply("gpu", "3g.48gb", 2),)
    )


@pytest.mark.parametrize("amount", ["", "two", "-1", "1.5", "1e3", "٣", "1_0", "9" * 10])
def test_an_amount_that_is_no_whole_number_is_an_issue_that_names_the_label(amount: str) -> None:
    issue = read_policy(policy("p", "all", amount))
    assert isinstance(issue, Issue)
    assert (issue.reason, issue.policy) == ("InvalidSupply", "p")
    assert "resource-supply-amount" in issue.message


def test_a_policy_says_what_each_gpu_becomes() -> None:
    given = policy("p")
    text = "n/1=off,n/0=1x1g.12gb.me-2x3g.48gb,0=empty"
    given["metadata"]["annotations"] = {f"{PREFIX}layouts": text}
    found = read_policy(given)
    assert isinstance(found, CandidatePolicy)
    assert found.declared_layouts == (
        NodeLayout("n", ((("1g.12gb.me", 1), ("3g.48gb", 2)), None)),
        NodeLayout("", ((),)),
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("n/0=2x3g.48gb,n/2=off", "name each of its GPUs once, from 0 on"),
        ("n/0=two", "pattern"),
        ("n/x=off", "integer"),
        ("off", "does not have the form"),
    ],
)
def test_layouts_that_say_nothing_clear_are_an_issue(text: str, said: str) -> None:
    given = policy("p")
    given["metadata"]["annotations"] = {f"{PREFIX}layouts": text}
    issue = read_policy(given)
    assert isinstance(issue, Issue)
    assert issue.reason == "InvalidSupply"
    assert said in issue.message


def test_a_policy_without_labels_is_an_issue_that_names_all_of_them() -> None:
    bare = policy("p")
    bare["metadata"]["labels"] = None
    issue = read_policy(bare)
    assert isinstance(issue, Issue)
    for label in ("resource-supply-kind", "resource-supply-device", "resource-supply-amount"):
        assert label in issue.message


def test_a_workload_is_read_from_labels_and_its_first_placement_reference() -> None:
    asked = workload("mwrs-app01", "app01", 2, "here")
    labels = asked["metadata"]["labels"]
    assert read_workload(asked) == Workload("mwrs-app01", "app01", "gpu", 2, "here", labels)


def test_a_workload_without_a_placement_reference_is_an_issue() -> None:
    bare = workload("mwrs-app01", "app01")
    bare["spec"]["placementRefs"] = []
    issue = read_workload(bare)
    assert isinstance(issue, Issue)
    assert (issue.reason, issue.workload) == ("NoPlacementRef", "mwrs-app01")


def test_a_cluster_is_selected_by_the_label_that_is_set() -> None:
    read = cluster_selectors([managed_cluster("a", cluster_name="a", name="a")], "cluster-name")
    assert read["a"] == Selector("a", "cluster-name")


def test_a_cluster_without_that_label_is_selected_by_name() -> None:
    read = cluster_selectors([managed_cluster("a", name="a"), managed_cluster("b")], "cluster-name")
    assert read == {"a": Selector("a", "name"), "b": Selector("b")}


def test_a_label_that_speaks_of_another_cluster_is_not_trusted() -> None:
    wrong = [managed_cluster("a", cluster_name="a"), managed_cluster("b", cluster_name="a")]
    assert cluster_selectors(wrong, "cluster-name") == {"a": Selector("a"), "b": Selector("b")}
