"""Layouts: the counts of the geometry, against brute force and against what is known."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsf.api.untrusted_text import InvalidInput
from optimizer.domain.mig.geometry import GEOMETRIES, Geometry, geometry
from optimizer.domain.mig.layouts import (
    GpuInstance,
    addable_instances,
    conflict,
    distinct_profile_counts,
    fragmentation,
    layouts,
    layouts_with_counts,
    least_fragmented_layout,
    maximal_profile_counts,
)
from tests.optimizer.domain.mig import brute_force

BASE = {19, 14, 9, 5, 0}
WIDE = BASE | {15}
SEVEN = [item for item in GEOMETRIES if item.compute_slices == 7]


def of(model: str) -> Geometry:
    found = geometry(model)
    assert not isinstance(found, InvalidInput)
    return found


def names(item: Geometry, numbers: set[int]) -> frozenset[str]:
    return frozenset(profile.name for profile in item.profiles if profile.profile_id in numbers)


@pytest.mark.parametrize("item", SEVEN, ids=lambda item: item.model)
@pytest.mark.parametrize(
    ("numbers", "legal", "counted", "full", "fullest"),
    [(BASE, 298, 37, 19, 12), (WIDE, 723, 77, 78, 28)],
)
def test_counts_of_the_gpus_with_seven_compute_slices(
    item: Geometry, numbers: set[int], legal: int, counted: int, full: int, fullest: int
) -> None:
    among = names(item, numbers)
    found = [frozenset(layout) for layout in layouts(item, among=among)]
    extensible = {small for small in found for big in found if small < big}
    assert len(found) == len(set(found)) == legal
    assert len(distinct_profile_counts(item, (), among)) - 1 == counted
    assert len(set(found) - extensible) == full
    assert len(maximal_profile_counts(item, (), among)) == fullest


@pytest.mark.parametrize(
    ("model", "numbers"), [("A30", {14, 21, 5, 6, 0}), ("H100-80GB", BASE), ("H100-80GB", WIDE)]
)
def test_brute_force_finds_the_same_layouts(model: str, numbers: set[int]) -> None:
    item = of(model)
    among = names(item, numbers)
    expected = brute_force.legal_layouts(item, numbers)
    assert {frozenset(layout) for layout in layouts(item, among=among)} == expected
    counted = {brute_force.counted(layout) for layout in expected}
    assert {tuple(sorted(found)) for found in distinct_profile_counts(item, (), among)} == counted
    assert {tuple(sorted(found)) for found in maximal_profile_counts(item, (), among)} == (
        brute_force.inclusion_maximal(counted)
    )


@pytest.mark.exhaustive
@pytest.mark.parametrize("item", GEOMETRIES, ids=lambda item: item.model)
def test_brute_force_finds_the_same_layouts_of_every_profile(item: Geometry) -> None:
    numbers = {profile.profile_id for profile in item.profiles}
    expected = brute_force.legal_layouts(item, numbers)
    assert {frozenset(layout) for layout in layouts(item)} == expected


@pytest.mark.parametrize("item", GEOMETRIES, ids=lambda item: item.model)
def test_on_an_empty_gpu_sums_of_slices_alone_decide(item: Geometry) -> None:
    numbers = {profile.profile_id for profile in item.profiles}
    assert {tuple(sorted(found)) for found in distinct_profile_counts(item)} == (
        brute_force.legal_counts(item, numbers)
    )


@pytest.mark.parametrize("item", GEOMETRIES, ids=lambda item: item.model)
def test_a_profile_fits_as_often_as_its_table_says(item: Geometry) -> None:
    for profile in item.profiles:
        if not profile.media:
            assert (
                max(dict(m).get(profile.name, 0) for m in distinct_profile_counts(item))
                == profile.max_instances
            )


@pytest.mark.parametrize("item", GEOMETRIES, ids=lambda item: item.model)
def test_profiles_are_what_a_gpu_of_their_model_can_have(item: Geometry) -> None:
    """Their names say their slices and memory; instances start where they end within the GPU."""
    assert len({profile.profile_id for profile in item.profiles}) == len(item.profiles)
    memory = float(item.model.rpartition("-")[2].removesuffix("GB"))
    for profile in item.profiles:
        slices, _, size = profile.name.removesuffix("+me").partition("g.")
        assert int(slices) == profile.compute_slices <= item.compute_slices
        share = profile.memory_slices / item.memory_slices
        assert abs(float(size.removesuffix("gb")) - memory * share) <= 1
        assert list(profile.starts) == sorted(set(profile.starts))
        ends = [start + profile.memory_slices for start in profile.starts]
        assert min(profile.starts) == 0
        assert max(ends) <= item.memory_slices
        assert all(start % profile.memory_slices == 0 for start in profile.starts)
        together = min(len(profile.starts), item.compute_slices // profile.compute_slices)
        assert profile.max_instances == (1 if profile.media else together)


def test_the_twelve_full_layouts() -> None:
    among = names(of("A100-80GB"), BASE)
    spelt = {
        " ".join(f"{amount}x{name[0]}" for name, amount in found)
        for found in maximal_profile_counts(of("A100-80GB"), (), among)
    }
    assert spelt == {
        "7x1",
        "5x1 1x2",
        "3x1 2x2",
        "1x1 3x2",
        "2x1 1x2 1x3",
        "4x1 1x3",
        "2x2 1x3",
        "2x3",
        "3x1 1x4",
        "1x1 1x2 1x4",
        "1x3 1x4",
        "1x7",
    }


def test_a_1g_at_the_start_blocks_4g_and_7g() -> None:
    item, kept = of("H100-80GB"), (GpuInstance("1g.10gb", 0),)
    reachable = {name for found in distinct_profile_counts(item, kept) for name, _ in found}
    assert not {"4g.40gb", "7g.80gb"} & reachable
    free = {
        name for f in distinct_profile_counts(item, (GpuInstance("1g.10gb", 6),)) for name, _ in f
    }
    assert "4g.40gb" in free
    assert "7g.80gb" not in free


@given(st.data())
def test_layouts_of_an_occupied_gpu_are_those_of_an_empty_one_that_hold_its_instances(
    data: st.DataObject,
) -> None:
    item = of("A30")
    everything = [frozenset(layout) for layout in layouts(item)]
    kept = frozenset(data.draw(st.sampled_from(everything)))
    found = {frozenset(layout) for layout in layouts(item, kept)}
    assert found == {layout for layout in everything if kept <= layout}


@pytest.mark.parametrize(
    ("held", "why"),
    [
        ([("3g.40gb", 0), ("4g.40gb", 0)], "4g.40gb at 0 overlaps 3g.40gb at 0"),
        ([("2g.20gb", 6)], "2g.20gb can't start at 6, only at 0, 2, 4"),
        ([("1g.10gb+me", 0), ("1g.10gb+me", 1)], "only one instance can have the media engines"),
        ([("5g.50gb", 0)], "H100-80GB has no profile 5g.50gb"),
    ],
)
def test_why_instances_conflict(held: list[tuple[str, int]], why: str) -> None:
    instances = [GpuInstance(*item) for item in held]
    assert conflict(of("H100-80GB"), instances).startswith(why)
    assert not list(layouts(of("H100-80GB"), instances))


def test_instances_are_placed_where_they_cost_the_least_room() -> None:
    item = of("H100-80GB")
    assert least_fragmented_layout(item, (("1g.10gb", 1),)) == (GpuInstance("1g.10gb", 6),)
    assert fragmentation(item, (GpuInstance("1g.10gb", 6),)) == 0
    assert fragmentation(item, (GpuInstance("1g.10gb", 0),)) > 0
    assert least_fragmented_layout(item, (("7g.80gb", 2),)) is None


@pytest.mark.parametrize("item", [of("A30"), of("H100-80GB")], ids=lambda item: item.model)
def test_fragmentation_is_room_lost_against_the_best_place(item: Geometry) -> None:
    for counts in [(("1g.6gb", 1),), (("1g.10gb", 1), ("2g.20gb", 1))]:
        rooms = {
            layout: addable_instances(item, layout) for layout in layouts_with_counts(item, counts)
        }
        for layout, here in rooms.items():
            lost = sum(
                profile.compute_slices * (max(column) - now)
                for profile, now, column in zip(
                    item.profiles, here, zip(*rooms.values(), strict=True), strict=True
                )
            )
            assert fragmentation(item, layout) == lost


@pytest.mark.parametrize(
    ("named", "model"),
    [
        ("h100-80gb", "H100-80GB"),
        ("NVIDIA-H100-80GB-HBM3", "H100-80GB"),
        ("NVIDIA-A100-SXM4-40GB", "A100-40GB"),
        ("NVIDIA-A30", "A30-24GB"),
        ("NVIDIA-GH200-480GB", "H100-96GB"),
    ],
)
def test_models_go_by_the_names_of_their_node_labels(named: str, model: str) -> None:
    assert of(named).model == model


def test_an_unknown_model_is_told_which_are_known() -> None:
    found = geometry("NVIDIA-L40S")
    assert isinstance(found, InvalidInput)
    assert "'NVIDIA-L40S'" in found.message
    assert "H100-80GB" in found.message
