"""The steps of a transition as they are shown."""

from dataclasses import replace

from optimizer.domain.fleet import CandidatePolicy, NodeLayout, Supply
from optimizer.domain.solution import unlimited
from optimizer.model.current_state import current_state
from optimizer.model.formulate import formulate
from optimizer.transition.transition_steps import transition_plan
from optimizer.wire.explanation import GpusToDrain
from tests.optimizer.build import fleet
from tests.optimizer.explain.solvers import RESOLVE


def test_a_policy_that_nothing_asked_for_can_use_is_released_all_the_same() -> None:
    given = fleet({"c": [("all", 1), ("3g", 2)]}, {"a": 2}, {("c", "a", "3g"): 10.0})
    (cluster,) = given.clusters
    old, new = cluster.candidates
    current = replace(cluster, candidates=(replace(old, current=True), new))
    now = replace(given, clusters=(current,))
    problem = formulate(now)
    goal = RESOLVE(problem).decision
    found = transition_plan(now, problem, current_state(problem, goal), goal, unlimited)
    assert found is not None
    changed = [
        ([item.policy for item in step.release], [item.policy for item in step.enforce])
        for step in found.steps
        if step.enforce
    ]
    assert changed == [(["all"], ["3g"])]
    assert found.message.endswith("devices of these policies: all on c")
    assert transition_plan(given, problem, current_state(problem, goal), goal, unlimited) is None


def test_what_must_be_idle_and_what_comes_back_is_named() -> None:
    """GPU 1 of the node gets another layout; what a policy that is not read says is not known."""
    table = {("c", "a", "3g"): 10.0, ("c", "b", "2g"): 20.0}
    given = fleet({"c": [("3g", 2), ("2g", 1)]}, {"a": 1, "b": 1}, table)
    (cluster,) = given.clusters
    old, new = cluster.candidates
    new = replace(new, supplies=(*new.supplies, Supply("gpu", "3g", 1)))
    known = tuple(
        replace(item, declared_layouts=(NodeLayout("n", ((("3g", 1),), ((device, 1),))),))
        for item, device in ((replace(old, current=True), "3g"), (new, "2g"))
    )
    tasks = (replace(given.workloads[0], current=("c",)), given.workloads[1])
    for policies, gpus, back in ((known, ("n/1",), []), (bare(known), None, ["a"])):
        now = replace(given, workloads=tasks, clusters=(replace(cluster, candidates=policies),))
        problem = formulate(now)
        goal = RESOLVE(problem).decision
        found = transition_plan(now, problem, current_state(problem, goal), goal, unlimited)
        assert found is not None
        (drained,) = [item for step in found.steps for item in step.draining]
        assert drained == GpusToDrain(cluster="c", policy="3g", gpus=gpus)
        assert [item.workload for item in found.returning] == back
        assert ("started again at the same place" in found.message) is bool(back)


def bare(policies: tuple[CandidatePolicy, ...]) -> tuple[CandidatePolicy, ...]:
    return tuple(replace(item, declared_layouts=()) for item in policies)
