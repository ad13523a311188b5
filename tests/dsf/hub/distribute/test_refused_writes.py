"""Each cluster whose writes are refused has a back-off of its own."""

from dsf.hub.distribute.held_clusters import RefusedWrites
from dsf.kube.changes import ChangeResult, Delete, Patch
from dsf.kube.errors import (
    AlreadyExists,
    Conflict,
    Forbidden,
    KubeError,
    NotFound,
    ServerError,
    Unreachable,
)
from dsf.kube.kinds import DYNAMIC_SCORER, MANIFEST_WORK, Kind
from dsf.runtime.backoff import Backoff

BACKOFF = Backoff(1.0, 300.0)


def outcome(cluster: str, error: KubeError | None, kind: Kind = MANIFEST_WORK) -> ChangeResult:
    return ChangeResult(Delete(kind, "work", cluster), error)


def after(refusals: RefusedWrites, now: float, *outcomes: ChangeResult) -> RefusedWrites:
    return refusals.after(outcomes, ["c1", "c2"], now=now, draw=0.0, backoff=BACKOFF)


def test_each_cluster_waits_for_its_own_time() -> None:
    first = after(RefusedWrites(), 0.0, outcome("c1", Forbidden("no")), outcome("c2", None))
    assert first.held(0.5) == {"c1"}
    assert first.held(1.0) == frozenset()
    second = after(first, 1.0, outcome("c1", Forbidden("no")), outcome("c2", Forbidden("nor")))
    assert second.held(2.5) == {"c1"}
    assert (second.next_at(1.0), second.next_at(2.5)) == (2.0, 3.0)


def test_its_words_stay_as_long_as_the_type_of_the_error_does() -> None:
    first = after(RefusedWrites(), 0.0, outcome("c1", ServerError("port 1")))
    second = after(first, 1.0, outcome("c1", ServerError("port 2")))
    assert second.words() == {"c1": "port 1"}
    assert after(second, 3.0, outcome("c1", Forbidden("no"))).words() == {"c1": "no"}


def test_a_success_and_a_cluster_that_went_are_forgotten() -> None:
    first = after(
        RefusedWrites(), 0.0, outcome("c1", Forbidden("no")), outcome("c2", Forbidden("no"))
    )
    assert after(first, 0.5, outcome("c1", None)).words() == {"c2": "no"}
    assert first.after([], ["c1"], now=0.5, draw=0.0, backoff=BACKOFF).words() == {"c1": "no"}


def test_what_is_no_clusters_own_fault_is_not_held_against_it() -> None:
    told = (
        outcome("c1", Unreachable("away")),
        outcome("c1", Conflict("old")),
        outcome("c1", AlreadyExists("there")),
        ChangeResult(Patch(MANIFEST_WORK, "work", "c1", {}), NotFound("gone")),
        outcome("c2", Forbidden("status"), DYNAMIC_SCORER),
    )
    assert after(RefusedWrites(), 0.0, *told) == RefusedWrites()
