"""When statuses of progress may be written, by events of one reconcile after the other."""

import math

from dsf.hub.report.progress_reports import LONGEST_WAITS, ProgressReports, is_progress
from dsf.kube.changes import Change, ChangeResult, Patch
from dsf.kube.errors import ServerError
from dsf.kube.kinds import DYNAMIC_SCORER, MANIFEST_WORK

WORK = Patch(MANIFEST_WORK, "work", "c1", {"spec": {}})
PROGRESS = Patch(DYNAMIC_SCORER, "cpu", "hub", {"status": {"clusters": {"scoring": 1}}}, "status")
RECORD = Patch(
    DYNAMIC_SCORER, "cpu", "hub", {"status": {"conditions": [], "healthStatus": "Active"}}, "status"
)


def due_at(reports: ProgressReports, *changes: Change, unseen: bool = False) -> float:
    return reports.due_at(changes, unseen=unseen, seconds=5.0)


def after(reports: ProgressReports, now: float, *done: Change, waits: bool) -> ProgressReports:
    return reports.after([ChangeResult(each) for each in done], waits=waits, now=now)


def test_what_is_distributed_or_answers_an_edit_is_no_progress() -> None:
    edited = Patch(DYNAMIC_SCORER, "cpu", "hub", {"status": {"observedGeneration": 2}}, "status")
    assert [is_progress(each) for each in (WORK, RECORD, edited, PROGRESS)] == [False] * 3 + [True]


def test_progress_is_told_at_once_and_then_every_so_often() -> None:
    reports = ProgressReports()
    assert due_at(reports, PROGRESS) == -math.inf
    reports = after(reports, 100.0, PROGRESS, waits=False)
    assert due_at(reports, PROGRESS) == 105.0
    failed = reports.after([ChangeResult(PROGRESS, ServerError("no"))], waits=False, now=200.0)
    assert due_at(failed, PROGRESS) == 105.0


def test_progress_waits_for_works_until_they_are_seen() -> None:
    reports = ProgressReports()
    assert due_at(reports, WORK, PROGRESS) == math.inf
    reports = after(reports, 100.0, WORK, waits=True)
    assert due_at(reports, PROGRESS, unseen=True) == 105.0
    assert due_at(reports, PROGRESS) == -math.inf


def test_what_works_led_to_is_told_soon_after_them_though_progress_was_just_told() -> None:
    reports = after(ProgressReports(), 100.0, PROGRESS, waits=False)
    reports = after(reports, 101.0, WORK, waits=True)
    assert due_at(reports, PROGRESS) == 103.5
    late = after(reports, 104.0, WORK, waits=True)
    assert due_at(late, PROGRESS) == 105.0
    told = after(late, 105.0, PROGRESS, waits=False)
    assert due_at(told, PROGRESS) == 110.0


def test_works_that_never_end_let_progress_wait_only_so_long() -> None:
    reports, now = ProgressReports(), 100.0
    while due_at(reports, WORK, PROGRESS) > now:
        reports = after(reports, now, WORK, waits=True)
        now += 1.0
    assert now == 100.0 + 5.0 * LONGEST_WAITS
    assert after(reports, now, PROGRESS, waits=False).waiting_since is None
