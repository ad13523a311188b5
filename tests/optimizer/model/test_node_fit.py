"""Whether Pods find nodes, against all that kube-scheduler may do on small clusters."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.optimizer.instances import instance
from benchmarks.optimizer.nodes import with_nodes
from dsf.placement import Taint, Toleration
from optimizer.domain.fleet import Cluster, Fleet, Objective, Selector, Supply, Workload
from optimizer.domain.nodes import NodeGroup, NodeSelectorTerm, Packing, PodGroup
from optimizer.domain.score_matrix import ScoreMatrix
from optimizer.domain.solution import Assignment, Decision
from optimizer.model.formulate import formulate
from optimizer.model.nodes.pod_demands import pod_demands
from optimizer.model.predicates import ResourceIndex
from optimizer.model.rules import violations
from optimizer.plan.unplaced_reasons import unplaced
from optimizer.solve.node_rows import resolve_with_node_rows
from optimizer.solve.strategy import solve_problem
from optimizer.solve.warm_start import kept_for_next
from tests.optimizer.build import body, request

GPU = "nvidia.com/gpu"
Amounts = tuple[float, ...]
"""What a Pod requests, or a node has free, of cpu, of GPUs, and of Pods."""


def fleet(
    nodes: Sequence[NodeGroup],
    pods: Sequence[tuple[PodGroup, ...]],
    packing: Packing = "AnyOrder",
    running: int = 0,
) -> Fleet:
    """One cluster on which nothing but nodes is scarce; the first workloads run on it."""
    cluster = Cluster(
        "c", Selector("c"), (), base=(Supply("job", "", 99),), nodes=tuple(nodes), packing=packing
    )
    workloads = tuple(
        Workload(
            f"w{at}",
            "app",
            "job",
            1.0,
            "placement",
            pods=own,
            current=("c",) if at < running else (),
        )
        for at, own in enumerate(pods)
    )
    scores = {"score": ScoreMatrix.of({("c", "app", ""): 1.0})}
    return Fleet("default", (cluster,), workloads, scores, (Objective("score"),))


def fits(found: Fleet) -> bool:
    """Tell what the model says of running all workloads."""
    every = tuple(Assignment(item.name, "c", "") for item in found.workloads)
    return not violations(formulate(found), Decision((), every))


def after(free: Sequence[Amounts], pod: Amounts) -> Iterator[tuple[Amounts, ...]]:
    """Yield what nodes have free after each choice of a node for a Pod."""
    for at, node in enumerate(free):
        left = tuple(has - takes for has, takes in zip(node, pod, strict=True))
        if min(left) >= -1e-9:
            yield tuple(sorted((*free[:at], left, *free[at + 1 :])))


def some_order_fails(free: Sequence[Amounts], pods: Sequence[Amounts]) -> bool:
    """Tell by trying all orders and all nodes whether a Pod can find no node."""

    @cache
    def fails(nodes: tuple[Amounts, ...], left: tuple[Amounts, ...]) -> bool:
        for pod in set(left):
            rest = list(left)
            rest.remove(pod)
            choices = set(after(nodes, pod))
            if not choices or any(fails(chosen, tuple(rest)) for chosen in choices):
                return True
        return False

    return fails(tuple(sorted(free)), tuple(sorted(pods)))


def can_be_packed(free: Sequence[Amounts], pods: Sequence[Amounts]) -> bool:
    """Tell by trying all assignments to nodes whether there is one for all Pods."""

    @cache
    def packs(nodes: tuple[Amounts, ...], left: tuple[Amounts, ...]) -> bool:
        if not left:
            return True
        return any(packs(chosen, left[:-1]) for chosen in set(after(nodes, left[-1])))

    return packs(tuple(sorted(free)), tuple(sorted(pods)))


def group(amounts: Amounts, count: int = 1) -> NodeGroup:
    return NodeGroup(count, dict(zip(("cpu", GPU, "pods"), amounts, strict=True)))


def pod(amounts: Amounts, count: int = 1) -> tuple[PodGroup, ...]:
    return (PodGroup(count, dict(zip(("cpu", GPU), amounts[:2], strict=True))),)


cpus = st.sampled_from((0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0))
node = st.tuples(
    st.sampled_from((3.5, 4.0, 6.0, 8.0)),
    st.sampled_from((0.0, 2.0, 4.0)),
    st.sampled_from((2.0, 9.0)),
)
some_nodes = st.lists(node, min_size=1, max_size=3)
some_pods = st.lists(
    st.tuples(cpus, st.sampled_from((0.0, 0.0, 1.0, 2.0)), st.just(1.0)), min_size=1, max_size=5
)


@settings(max_examples=400, deadline=None)
@given(some_nodes, some_pods, st.booleans())
def test_what_fits_in_any_order_starts_whatever_the_scheduler_does(
    nodes: list[Amounts], pods: list[Amounts], together: bool
) -> None:
    workloads = Counter(pods).items() if together else [(item, 1) for item in pods]
    if fits(fleet([group(item) for item in nodes], [pod(*item) for item in workloads])):
        assert not some_order_fails(nodes, pods)


@settings(max_examples=400, deadline=None)
@given(some_nodes, some_pods)
def test_what_fits_with_the_largest_first_can_be_packed(
    nodes: list[Amounts], pods: list[Amounts]
) -> None:
    found = fleet([group(item) for item in nodes], [pod(item) for item in pods], "BestFit")
    if fits(found):
        assert can_be_packed(nodes, pods)


def held_by(amounts: Amounts, **held: Amounts) -> NodeGroup:
    """A node, and what workloads hold there."""
    names = ("cpu", GPU, "pods")
    found = tuple((name, dict(zip(names, much, strict=True))) for name, much in held.items())
    return replace(group(amounts), held=found)


some_held = st.lists(st.sampled_from((0.5, 1.0, 2.0)), min_size=1, max_size=3)


@settings(max_examples=200, deadline=None)
@given(some_nodes, some_held, some_pods)
def test_what_runs_and_stays_keeps_its_node(
    nodes: list[Amounts], held: list[float], pods: list[Amounts]
) -> None:
    running = [(cpu, 0.0, 1.0) for cpu in held]
    free = [list(item) for item in nodes]
    groups = []
    for at, amounts in enumerate(nodes):
        own = {f"w{n}": one for n, one in enumerate(running) if n % len(nodes) == at}
        groups.append(held_by(amounts, **own))
        for one in own.values():
            free[at] = [has - takes for has, takes in zip(free[at], one, strict=True)]
    if min(min(item) for item in free) < 0:
        return
    every = [pod(item) for item in (*running, *pods)]
    if fits(fleet(groups, every, running=len(running))):
        assert not some_order_fails([tuple(item) for item in free], pods)


@settings(max_examples=200, deadline=None)
@given(some_nodes, some_pods)
def test_no_node_is_told_only_of_what_can_not_be_packed(
    nodes: list[Amounts], pods: list[Amounts]
) -> None:
    every = tuple(own for item in pods for own in pod(item))
    found = fleet([group(item) for item in nodes], [every])
    missing = ResourceIndex(found).missing_nodes(pod_demands(found)["w0"])[0]
    if can_be_packed(nodes, pods):
        assert missing is None or missing.possible
    elif len(set(pods)) == 1:
        assert missing is not None
        assert not missing.possible
    if missing is None:
        assert not some_order_fails(nodes, pods)


BIG, SMALL = pod((4.0, 2.0, 1.0)), pod((2.0, 1.0, 1.0))
TWO = [group((4.0, 2.0, 9.0), 2)]
DAEMON = (PodGroup(0, {"cpu": 1.0}, per_node=True),)
TAINTED = replace(group((4.0, 2.0, 9.0)), taints=(Taint("gpu", "NoSchedule", "yes"),))
LABELLED = replace(group((4.0, 2.0, 9.0)), labels={"zone": "a"})


def placed_by(
    own: PodGroup, *terms: NodeSelectorTerm, tolerates: Toleration | None = None
) -> tuple[PodGroup, ...]:
    affinity = (terms,) if terms else ()
    return (replace(own, affinity=affinity, tolerations=(tolerates,) if tolerates else ()),)


@pytest.mark.parametrize(
    ("nodes", "pods", "packing", "expected"),
    [
        (TWO, [BIG, BIG], "AnyOrder", True),
        (TWO, [BIG, SMALL], "AnyOrder", True),
        (TWO, [BIG, SMALL, SMALL], "AnyOrder", False),
        (TWO, [BIG, SMALL, SMALL], "BestFit", True),
        ([group((4.0, 2.0, 9.0))], [SMALL, SMALL], "AnyOrder", True),
        ([group((4.0, 2.0, 1.0))], [SMALL, SMALL], "AnyOrder", False),
        ([group((9.0, 0.0, 9.0))], [SMALL], "BestFit", False),
        ([], [SMALL], "AnyOrder", False),
        ([group((8.0, 8.0, 9.0), 5_000)], [pod((8.0, 8.0, 1.0), 5_000)], "AnyOrder", True),
        ([group((8.0, 8.0, 9.0), 5_000)], [pod((8.0, 8.0, 1.0), 5_001)], "AnyOrder", False),
        (TWO, [SMALL, SMALL, DAEMON], "AnyOrder", False),
        ([group((6.0, 4.0, 9.0), 2)], [SMALL, SMALL, DAEMON], "AnyOrder", True),
        ([TAINTED], [SMALL], "AnyOrder", False),
        (
            [TAINTED],
            [placed_by(SMALL[0], tolerates=Toleration("gpu", "Equal", "yes", "NoSchedule"))],
            "AnyOrder",
            True,
        ),
        (
            [TAINTED],
            [placed_by(SMALL[0], tolerates=Toleration("", "Exists", "", ""))],
            "AnyOrder",
            True,
        ),
        (
            [LABELLED],
            [placed_by(SMALL[0], NodeSelectorTerm("zone", "In", ("a",)))],
            "AnyOrder",
            True,
        ),
        (
            [LABELLED],
            [placed_by(SMALL[0], NodeSelectorTerm("zone", "NotIn", ("a",)))],
            "AnyOrder",
            False,
        ),
        ([LABELLED], [placed_by(SMALL[0], NodeSelectorTerm("gpu", "Exists"))], "AnyOrder", False),
    ],
)
def test_nodes_bound_what_a_cluster_starts(
    nodes: list[NodeGroup], pods: list[tuple[PodGroup, ...]], packing: Packing, expected: bool
) -> None:
    assert fits(fleet(nodes, pods, packing)) is expected


def unplaced_reason(found: Fleet, name: str) -> tuple[str, str]:
    problem = formulate(found)
    solution = solve_problem(problem, solver="highs", time_limit_seconds=60)
    assert violations(problem, solution.decision) == ()
    asked = request(**body(workloads=[item.name for item in found.workloads]))
    (reason,) = (i for i in unplaced(asked, found, problem, solution) if i.workload == name)
    return reason.reason, reason.message


def test_no_node_is_told_with_what_is_asked_and_the_most_on_one_node() -> None:
    reason, message = unplaced_reason(
        fleet([group((9.0, 2.0, 9.0), 2)], [pod((1.0, 4.0, 1.0))]), "w0"
    )
    assert reason == "NoNodeFits"
    assert message.endswith(
        "a Pod looks for a node with 1 cpu, 4 nvidia.com/gpu free"
        " (the most on one is 2 nvidia.com/gpu) on cluster c"
    )


BESIDE = pod((0.5, 0.0, 1.0), 9)
"""A workload that makes amounts be counted in half CPUs."""
UNEVEN = [group((5.5, 4.0, 9.0)), group((2.5, 4.0, 9.0), 2)]


@pytest.mark.parametrize(
    ("nodes", "pods", "reason"),
    [
        (UNEVEN, pod((2.0, 1.0, 1.0), 4), ""),
        (UNEVEN, pod((2.0, 1.0, 1.0), 5), "NoNodeFits"),
        (TWO, (*BIG, *pod((2.0, 1.0, 1.0), 2)), "Fragmented"),
        (TWO, (*BIG, *pod((2.0, 1.0, 1.0), 3)), "NoNodeFits"),
        (TWO, (*BIG, *pod((3.0, 2.0, 1.0), 2)), "NoNodeFits"),
        ([TAINTED], SMALL, "NoNodeFits"),
    ],
)
def test_no_node_is_told_only_of_what_can_not_start(
    nodes: list[NodeGroup], pods: tuple[PodGroup, ...], reason: str
) -> None:
    found = fleet(nodes, [pods, BESIDE])
    if reason:
        assert unplaced_reason(found, "w0")[0] == reason
    else:
        alone = Decision((), (Assignment("w0", "c", ""),))
        assert not violations(formulate(found), alone)


def test_what_only_fits_if_packed_well_is_told_with_the_workload_in_its_way() -> None:
    found = fleet(TWO, [SMALL, SMALL, BIG])
    first = replace(found.workloads[0], priority=1), replace(found.workloads[1], priority=1)
    found = replace(found, workloads=(*first, found.workloads[2]))
    reason, message = unplaced_reason(found, "w2")
    assert reason == "Fragmented"
    said = "it is not certain that a Pod of workload w2 finds one of 2 nodes with 4 cpu, 2"
    assert f"{said} nvidia.com/gpu free; without workload w0 it would be" in message
    packed = replace(found, clusters=(replace(found.clusters[0], packing="BestFit"),))
    solution = solve_problem(formulate(packed), solver="highs", time_limit_seconds=60)
    assert len(solution.decision.assignments) == 3


@pytest.mark.parametrize("seconds", [60.0, 0.0])
def test_large_problems_place_only_what_finds_nodes(seconds: float) -> None:
    problem = with_nodes(instance(8, 24, "dist"), 2, 0.3, "AnyOrder")
    solution = solve_problem(problem, solver="highs", time_limit_seconds=seconds, gap=0.02)
    assert violations(problem, solution.decision) == ()
    assert solution.bound is not None
    assert solution.objective_value <= solution.bound + 1e-6


def test_a_solve_after_nodes_are_lost_starts_from_the_last_one_and_fits() -> None:
    problem = with_nodes(instance(8, 24, "dist"), 4, 0.3, "AnyOrder")
    solved = solve_problem(problem, solver="highs", time_limit_seconds=60, gap=0.02)
    smaller = with_nodes(instance(8, 24, "dist"), 1, 0.3, "AnyOrder")
    kept = kept_for_next(problem, solved)
    assert kept is not None
    found = resolve_with_node_rows(smaller, kept, gap=0.02, stop=lambda: False, clock=lambda: 0.0)
    assert found is not None
    solution = found[0]
    assert violations(smaller, solution.decision) == ()
    again = solve_problem(
        smaller,
        solver="highs",
        time_limit_seconds=60,
        gap=0.02,
        incumbent=solution.decision,
        prices=solution.prices,
        node_rows=solution.node_rows,
    )
    assert violations(smaller, again.decision) == ()
    assert again.objective_value >= solution.objective_value - 1e-6
