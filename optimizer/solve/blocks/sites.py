"""Sites: what of a cluster has to be decided together, and the modes it can be in."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from optimizer.model.problem import Problem, ProblemPolicy

MOST_MODES_OF_A_SITE = 1_000


@dataclass(frozen=True, slots=True)
class Site:
    """Slots of a cluster that policies of the same pools supply, or one slot without any policy.

    `modes`: the options of each mode, by number, first the mode without any.
    """

    cluster: int
    slots: tuple[int, ...]
    modes: tuple[tuple[int, ...], ...]


def sites_of(
    problem: Problem, slots: Mapping[int, int], options: frozenset[int]
) -> list[Site] | None:
    """Return the sites that some slots belong to; None where one has too many modes.

    `slots`: numbers of the slots that matter, with their clusters. `options`: those that may be
    enforced.
    """
    by_cluster: dict[int, list[int]] = {}
    for slot, cluster in slots.items():
        by_cluster.setdefault(cluster, []).append(slot)
    pools: dict[int, dict[str, list[int]]] = {}
    for number, option in enumerate(problem.policies):
        if number in options and any(slot in slots for slot, _ in option.supplies):
            pools.setdefault(option.cluster, {}).setdefault(option.pool, []).append(number)
    found = []
    for cluster, own in by_cluster.items():
        for members, groups in _connected(problem, own, pools.get(cluster, {})):
            count = 1
            for group in groups:
                count *= 1 + len(group)
            if count > MOST_MODES_OF_A_SITE:
                return None
            modes = product(*([None, *group] for group in groups))
            chosen = tuple(tuple(o for o in mode if o is not None) for mode in modes)
            found.append(Site(cluster, tuple(sorted(members)), chosen))
    return found


def undominated_options(problem: Problem, tied: frozenset[int]) -> frozenset[int]:
    """Return the options without those that another of their pool replaces at no loss.

    `tied`: options of which further rows speak; they stay, and replace nothing.
    """
    by_pool: dict[tuple[int, str], list[int]] = {}
    for number, option in enumerate(problem.policies):
        by_pool.setdefault((option.cluster, option.pool), []).append(number)
    kept: set[int] = set()
    for members in by_pool.values():
        free = [number for number in members if number not in tied]
        gone: set[int] = set()
        for number in free:
            rivals = (rival for rival in free if rival != number and rival not in gone)
            if any(_dominates(problem, rival, number) for rival in rivals):
                gone.add(number)
        kept |= set(members) - gone
    return frozenset(kept)


def _dominates(problem: Problem, rival: int, number: int) -> bool:
    """Tell whether a rival supplies as much of everything, costs no more, and is preferred."""
    better, worse = problem.policies[rival], problem.policies[number]
    given = _amounts(better)
    enough = all(given.get(slot, -1.0) >= amount for slot, amount in worse.supplies)
    if not enough or better.value < worse.value:
        return False
    if worse.value == better.value and _amounts(worse) == given:
        return (not better.current, rival) < (not worse.current, number)
    return not worse.current or better.value > worse.value or better.current


def _amounts(option: ProblemPolicy) -> dict[int, float]:
    amounts: dict[int, float] = {}
    for slot, amount in option.supplies:
        amounts[slot] = amounts.get(slot, 0.0) + amount
    return amounts


def _connected(
    problem: Problem, slots: list[int], pools: Mapping[str, list[int]]
) -> Iterator[tuple[set[int], list[list[int]]]]:
    """Yield sets of slots that share pools, with the options of those pools."""
    wanted = set(slots)
    groups: list[tuple[set[int], list[list[int]]]] = [({slot}, []) for slot in slots]
    for options in pools.values():
        touched = {
            slot for option in options for slot, _ in problem.policies[option].supplies
        } & wanted
        hit = [group for group in groups if group[0] & touched]
        groups = [group for group in groups if not group[0] & touched]
        slots_of = set().union(*(group[0] for group in hit))
        groups.append((slots_of, [*(pool for group in hit for pool in group[1]), options]))
    yield from groups
