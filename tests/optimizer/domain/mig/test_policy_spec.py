"""Generated mig-parted files, which its parser accepts, and the Policies that apply them."""

import re
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from dsf.api.optimization import Optimization
from optimizer.candidates.pool_candidates import pool_candidates
from optimizer.domain.fleet import CandidatePolicy, NodeLayout, ProfileCounts
from optimizer.domain.mig.geometry import GEOMETRIES, Geometry
from optimizer.domain.mig.gpu_pools import Gpu, GpuPool, NodeGpus, ReconfigurationRules
from optimizer.domain.mig.layouts import distinct_profile_counts
from optimizer.domain.mig.policy_spec import config_file, config_name, node_config, policy_specs
from optimizer.domain.settings import GPU_OPERATOR, GUIDE
from tests.optimizer.candidates.test_pool_candidates import demand, pool
from tests.optimizer.domain.mig.test_layouts import of

LABEL_VALUE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
H100 = of("H100-96GB")


def check_parted_file(text: str, geometry: Geometry) -> dict[str, Any]:
    """Check what mig-parted's api/spec/v1/spec.go checks when it reads a file."""
    read = yaml.safe_load(text)
    assert set(read) == {"version", "mig-configs"}
    assert read["version"] == "v1"
    assert read["mig-configs"]
    for entries in read["mig-configs"].values():
        assert entries
        for entry in entries:
            assert (
                {"devices", "mig-enabled"}
                <= set(entry)
                <= {"devices", "mig-enabled", "mig-devices", "device-filter"}
            )
            indices = entry["devices"]
            assert indices == "all" or all(type(index) is int for index in indices)
            assert ("mig-devices" in entry) == entry["mig-enabled"]
            for name, amount in entry.get("mig-devices", {}).items():
                assert geometry.profile(name).name == name
                assert amount > 0
    return dict(read["mig-configs"])


def node_layouts(geometry: Geometry) -> st.SearchStrategy[list[ProfileCounts | None]]:
    one = st.one_of(st.none(), st.sampled_from(distinct_profile_counts(geometry)))
    return st.lists(one, min_size=1, max_size=8)


@given(st.data())
def test_mig_parted_reads_every_layout_and_gives_each_gpu_its_own(data: st.DataObject) -> None:
    geometry = data.draw(st.sampled_from(GEOMETRIES))
    gpus = data.draw(node_layouts(geometry))
    configs = check_parted_file(config_file({config_name(gpus): node_config(gpus)}), geometry)
    entries = configs[config_name(gpus)]
    for index, wanted in enumerate(gpus):
        (entry,) = [e for e in entries if e["devices"] == "all" or index in e["devices"]]
        assert entry["mig-enabled"] is (wanted is not None)
        assert entry.get("mig-devices", {}) == dict(wanted or ())
    assert "all-disabled" in configs


@given(st.data())
def test_a_configuration_s_name_is_a_label_value_and_its_own(data: st.DataObject) -> None:
    one, other = data.draw(node_layouts(H100)), data.draw(node_layouts(H100))
    assert LABEL_VALUE.fullmatch(config_name(one))
    if node_config(one) != node_config(other):
        assert config_name(one) != config_name(other)


@pytest.mark.parametrize(
    ("gpus", "name"),
    [
        ([None, None], "all-disabled"),
        ([(("2g.24gb", 2), ("3g.48gb", 1))] * 2, "dsf-2x2g.24gb-1x3g.48gb"),
        ([(("3g.48gb", 2),), (("1g.12gb+me", 1),)], "dsf-1.2x3g.48gb_1.1x1g.12gb.me"),
        ([(("3g.48gb", 2),), None, None], "dsf-1.2x3g.48gb_2.off"),
    ],
)
def test_names_spell_the_layout(gpus: list[ProfileCounts | None], name: str) -> None:
    assert config_name(gpus) == name


def candidate(name: str, node: str, *gpus: ProfileCounts | None) -> CandidatePolicy:
    return CandidatePolicy(name, (), layouts=(NodeLayout(node, gpus),))


def templates(spec: dict[str, Any]) -> list[dict[str, Any]]:
    return [item["objectDefinition"] for item in spec["policy-templates"]]


def test_a_policy_writes_the_layouts_then_asks_for_one_then_waits_for_it() -> None:
    (spec,) = policy_specs([candidate("mig-a", "n1", (("3g.48gb", 2),))])
    layouts, wanted, done = templates(spec)
    assert [item["spec"]["remediationAction"] for item in (layouts, wanted, done)] == [
        "enforce",
        "enforce",
        "inform",
    ]
    (file,) = layouts["spec"]["object-templates"]
    assert file["objectDefinition"]["metadata"] == {
        "name": "dsf-mig-parted-config",
        "namespace": "gpu-operator",
    }
    check_parted_file(file["objectDefinition"]["data"]["config.yaml"], H100)
    (node,) = wanted["spec"]["object-templates"]
    assert node["objectDefinition"]["metadata"] == {
        "name": "n1",
        "labels": {"nvidia.com/mig.config": "dsf-2x3g.48gb"},
    }
    assert (
        spec["policy-templates"][1]["extraDependencies"][0]["name"] == layouts["metadata"]["name"]
    )
    (node,) = done["spec"]["object-templates"]
    assert node["objectDefinition"]["metadata"]["labels"] == {
        "nvidia.com/mig.config": "dsf-2x3g.48gb",
        "nvidia.com/mig.config.state": "success",
    }


def test_layouts_whose_namespace_comes_later_are_written_without_an_event_of_it() -> None:
    (spec,) = policy_specs([candidate("mig-a", "n1", (("3g.48gb", 2),))])
    layouts, wanted, done = templates(spec)
    assert layouts["spec"]["evaluationInterval"] == {"noncompliant": "10s"}
    assert not any("evaluationInterval" in item["spec"] for item in (wanted, done))


def test_policies_of_one_cluster_agree_about_the_file_and_share_no_template() -> None:
    chosen = [
        candidate("mig-a", "n1", (("3g.48gb", 2),)),
        candidate("mig-b", "n2", (("7g.96gb", 1),)),
    ]
    first, second = (templates(spec) for spec in policy_specs(chosen))
    assert first[0]["spec"] == second[0]["spec"]
    text = first[0]["spec"]["object-templates"][0]["objectDefinition"]["data"]["config.yaml"]
    assert set(check_parted_file(text, H100)) == {"all-disabled", "dsf-1x7g.96gb", "dsf-2x3g.48gb"}
    names = [item["metadata"]["name"] for item in (*first, *second)]
    assert len(set(names)) == len(names)


def test_without_a_name_the_node_that_has_gpus_is_meant() -> None:
    (spec,) = policy_specs([candidate("mig-a", "", None)])
    for definition in templates(spec)[1:]:
        (template,) = definition["spec"]["object-templates"]
        assert "name" not in template["objectDefinition"]["metadata"]
        assert template["objectSelector"] == {"matchLabels": {GPU_OPERATOR.present: "true"}}


def test_the_labels_are_a_setting() -> None:
    (spec,) = policy_specs([candidate("mig-a", "n1", None)], GUIDE)
    (node,) = templates(spec)[2]["spec"]["object-templates"]
    assert node["objectDefinition"]["metadata"]["labels"] == {
        "migsettinglabel": "all-disabled",
        "migresultlabel": "true",
    }


def test_every_candidate_of_two_nodes_configures_both() -> None:
    nodes = (NodeGpus("n1", (Gpu(H100),)), NodeGpus("n2", (Gpu(H100), Gpu(H100))))
    wanted = demand({"3g.48gb": [(2, 5)] * 2, "1g.12gb": [(1, 1)] * 9})
    found = pool_candidates(
        Optimization("default"), GpuPool("c1", nodes), wanted, ReconfigurationRules()
    ).items
    assert found
    for item in found:
        (spec,) = policy_specs([CandidatePolicy(item.policy, (), layouts=item.layouts)])
        marked = templates(spec)[1]["spec"]["object-templates"]
        names = [node["objectDefinition"]["metadata"]["name"] for node in marked]
        assert names == ["n1", "n2"]
        text = templates(spec)[0]["spec"]["object-templates"][0]["objectDefinition"]["data"]
        configs = check_parted_file(text["config.yaml"], H100)
        labels = [node["objectDefinition"]["metadata"]["labels"] for node in marked]
        assert {label["nvidia.com/mig.config"] for label in labels} <= set(configs)


def test_what_a_candidate_supplies_is_what_its_layouts_hold() -> None:
    wanted = demand({"3g.48gb": [(1, 5)], "all": [(1, 3)]})
    for item in pool_candidates(
        Optimization("default"), pool(Gpu(H100), Gpu(H100)), wanted, ReconfigurationRules()
    ).items:
        held: dict[str, int] = {}
        for gpu in item.layouts[0].gpus:
            for name, amount in gpu if gpu is not None else (("all", 1),):
                held[name] = held.get(name, 0) + amount
        assert {one.device: one.amount for one in item.supplies} == held
