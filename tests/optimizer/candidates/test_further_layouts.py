"""Layouts that no candidate policy has."""

from dataclasses import replace

from optimizer.candidates.fleet_candidates import with_candidates
from optimizer.candidates.further_layouts import further_layouts
from optimizer.domain.mig.geometry import GEOMETRIES
from optimizer.domain.mig.gpu_pools import Gpu, GpuPool, NodeGpus, ReconfigurationRules
from optimizer.domain.mig.layouts import layouts
from tests.optimizer.build import fleet

A30 = next(item for item in GEOMETRIES if item.model == "A30-24GB")
QUARTERS = next(item for item in layouts(A30) if len(item) == 4)
RULES = ReconfigurationRules()
GIVEN = fleet({"c": []}, {"w": 2, "q": 1}, {("c", "w", "2g.12gb"): 50, ("c", "q", "1g.6gb"): 9})


def test_what_a_candidate_supplies_is_no_further_layout() -> None:
    pools = {"c": (GpuPool("c", (NodeGpus("n", (Gpu(A30),)),)),)}
    given = with_candidates(GIVEN, pools, RULES)
    assert len(given.clusters[0].candidates) > 1
    assert {policy.cost for policy in given.clusters[0].candidates} == {0.0}
    assert further_layouts(given, pools, RULES) == {}


def test_a_layout_that_a_gpu_in_use_rules_out_is_one_and_names_the_gpu() -> None:
    busy = Gpu(A30, QUARTERS, QUARTERS[:1], QUARTERS[:1])
    pools = {"c": (GpuPool("c", (NodeGpus("n", (busy,)),)),)}
    given = with_candidates(GIVEN, pools, RULES)
    (found,) = further_layouts(given, pools, RULES).values()
    halves = [one for one in found if ("gpu", "2g.12gb", 2.0) in one.policy.supplies]
    assert [one.freed for one in halves] == [("n/0",)]
    again = halves[0].regenerate(replace(GIVEN))
    supplied = {supply for policy in again.clusters[0].candidates for supply in policy.supplies}
    assert ("gpu", "2g.12gb", 2.0) in supplied
