"""Clusters that are not written to: after a refusal, and until the watch shows a write."""

from dsf.hub.distribute.held_clusters import RefusedWrites, UnseenWrites
from dsf.hub.snapshot.summaries_work import SummariesWork
from dsf.kube.changes import Change, ChangeResult, Create, Delete, Patch
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


def test_one_that_is_due_and_has_to_wait_for_its_turn_is_still_refused() -> None:
    first = after(RefusedWrites(), 0.0, outcome("c1", Forbidden("no")))
    late = first.after([], ["c1"], now=99.0, draw=0.0, backoff=BACKOFF, left={"c1"})
    assert late == first
    assert not late.held(99.0)
    assert first.after([], ["c1"], now=99.0, draw=0.0, backoff=BACKOFF) == RefusedWrites()


def test_what_is_no_clusters_own_fault_is_not_held_against_it() -> None:
    told = (
        outcome("c1", Unreachable("away")),
        outcome("c1", Conflict("old")),
        outcome("c1", AlreadyExists("there")),
        ChangeResult(Patch(MANIFEST_WORK, "work", "c1", {}), NotFound("gone")),
        outcome("c2", Forbidden("status"), DYNAMIC_SCORER),
    )
    assert after(RefusedWrites(), 0.0, *told) == RefusedWrites()


NAME = "dynamic-scoring-config-manifestwork"


def work(version: str) -> SummariesWork:
    return SummariesWork("[]", version=version)


def patch(cluster: str) -> Change:
    return Patch(MANIFEST_WORK, NAME, cluster, {})


def wrote(change: Change, error: KubeError | None = None, **works: SummariesWork) -> UnseenWrites:
    return UnseenWrites().after([ChangeResult(change, error)], works, now=0, seconds=20)


def test_a_patched_work_is_held_until_another_version_is_seen() -> None:
    written = wrote(patch("c1"), c1=work("1"))
    assert written.held({"c1": work("1")}, now=1) == {"c1"}
    assert written.held({"c1": work("2")}, now=1) == frozenset()
    assert written.held({}, now=1) == frozenset()


def test_a_created_work_is_held_until_it_is_seen() -> None:
    created = wrote(Create(MANIFEST_WORK, {"metadata": {"name": NAME, "namespace": "c1"}}))
    assert created.held({}, now=1) == {"c1"}
    assert created.held({"c1": work("1")}, now=1) == frozenset()


def test_a_work_that_came_and_went_is_not_held_for_ever() -> None:
    assert wrote(Delete(MANIFEST_WORK, NAME, "c1")).held({}, now=20) == frozenset()


def test_a_conflict_says_that_the_picture_is_old_and_other_errors_say_nothing() -> None:
    assert wrote(patch("c1"), Conflict("old"), c1=work("1")).held({"c1": work("1")}, now=1)
    assert not wrote(patch("c1"), Unreachable("x"), c1=work("1")).held({"c1": work("1")}, now=1)


def test_so_does_one_that_is_there_already_or_has_gone() -> None:
    create = Create(MANIFEST_WORK, {"metadata": {"name": NAME, "namespace": "c1"}})
    assert wrote(create, AlreadyExists("there")).held({}, now=1) == {"c1"}
    gone = wrote(patch("c1"), NotFound("gone"), c1=work("1"))
    assert gone.held({"c1": work("1")}, now=1) == {"c1"}
    assert not wrote(create, NotFound("no namespace")).held({}, now=1)


def test_only_works_are_held() -> None:
    status = Patch(DYNAMIC_SCORER, "cpu", "c1", {}, "status")
    assert wrote(status, c1=work("1")).by_cluster == {}


def test_what_is_held_stays_so_over_rounds_that_write_nothing() -> None:
    works = {"c1": work("1"), "c2": work("7")}
    first = UnseenWrites().after([ChangeResult(patch("c1"))], works, now=0, seconds=20)
    second = first.after([ChangeResult(patch("c2"))], works, now=5, seconds=20)
    assert second.held(works, now=10) == {"c1", "c2"}
    assert second.held(works, now=21) == {"c2"}
