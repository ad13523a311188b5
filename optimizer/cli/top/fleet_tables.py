"""The views of `dsf top` as tables of text, from answers of an optimizer.

Others wrote names and messages; control characters in them are escaped.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from dsf.api.times import read_time, shown_duration
from dsf.api.untrusted_text import counted, escaped_lines
from optimizer.cli.top.fleet_reader import FleetAnswer

Item = Mapping[str, Any]

_REFUSED = "not known: GET /rollouts was refused"

MALFORMED = (
    *(LookupError, TypeError, ValueError, AttributeError),
    *(ArithmeticError, RecursionError),
)
"""What the rows of a view raise for an answer that is JSON, but not that of an optimizer."""


@dataclass(frozen=True, slots=True)
class ViewRow:
    """A row: its cells, and the details that Enter shows."""

    cells: tuple[str, ...]
    details: str = ""

    @classmethod
    def of(cls, *cells: object, details: Iterable[str] = ()) -> "ViewRow":
        """Return a row of whatever text, escaped; empty details are left out."""
        shown = tuple(escaped_lines(str(cell)) for cell in cells)
        return cls(shown, escaped_lines("\n".join(filter(None, details))))


@dataclass(frozen=True, slots=True)
class FleetView:
    """A view: its columns, and the rows of an answer at a time."""

    columns: tuple[str, ...]
    rows: Callable[[FleetAnswer, datetime], Iterator[ViewRow]]


def natural(name: str) -> list[tuple[int, int, str]]:
    """Return the key by which people sort names: app2 is before app10."""
    parts = filter(None, re.split(r"([0-9]{1,18})", name))
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts]


def matching(rows: Iterable[ViewRow], text: str) -> list[ViewRow]:
    """Return the rows with a text in a cell, in whatever letter case."""
    wanted = text.casefold()
    return [row for row in rows if any(wanted in cell.casefold() for cell in row.cells)]


def _overview(answer: FleetAnswer, now: datetime) -> Iterator[ViewRow]:
    findings = answer.fleet.get("findings", [])
    severities = Counter(item.get("severity", "error") for item in findings)
    told = ", ".join(counted(number, name) for name, number in severities.items())
    yield ViewRow.of("wrong", told or "nothing", "" if told else "no finding")
    for row in _findings(answer, now):
        yield ViewRow(("", row.cells[0], " ".join(row.cells[1:])), row.details)
    sums = (answer.fleet.get("capacity") or {}).get("fleet") or {}
    for item in sums.get("resources", ()):
        if item.get("model"):
            ours, others, free = (f"{item[name]:g}" for name in ("ours", "others", "free"))
            what = f"{item['model']} {item['resource'].rpartition('/')[2]}"
            yield ViewRow.of(
                "GPUs",
                f"{ours}+{others} of {item['capacity']:g}",
                f"{what}: {ours} ours, {others} of others, {free} free",
            )
    if sums.get("not_counted"):
        yield ViewRow.of("not counted", "", sums["not_counted"])
    moving = [item for item in answer.rollouts or () if item.get("phase") == "Progressing"]
    if answer.rollouts is None:
        yield ViewRow.of("moving", "-", _REFUSED)
    else:
        said = "rollouts in progress" if moving else "nothing moves"
        yield ViewRow.of("moving", len(moving), said)
    for item in moving:
        yield ViewRow.of("", _step(item), f"{item['record']}: {item.get('message', '')}")
    every = (item.get("places") or {"": "NotPlaced"} for item in answer.fleet.get("workloads", ()))
    states = Counter(state for places in every for state in places.values())
    for state in sorted(states.keys() - {"Landed"}):
        yield ViewRow.of("places", states[state], state)
    for item in answer.kept or ():
        status = item.get("status") or {}
        gain = status.get("gain")
        shown = "-" if gain is None else f"{gain:g}"
        said = f"{item['name']}: {item.get('wrong') or item['reason']}"
        yield ViewRow.of("gain", shown, said, details=_kept(item))
    for item in answer.fleet.get("scores", ()):
        yield ViewRow.of("scores", _fresh(item, now), f"{item['name']}: {_soonest(item, now)}")


def _kept(item: Item) -> Iterator[str]:
    yield f"PlacementOptimization {item['name']}, mode {item.get('mode', '')}"
    for name in ("message", "effect", "waiting", "move_rule"):
        yield str(item.get(name, ""))


def _fresh(score: Item, now: datetime) -> str:
    """Return on how many clusters a score is valid, of those that have it."""
    untils = [until for until in score.get("valid_until", ()) if until is not None]
    fresh = sum(until > now.timestamp() for until in untils)
    return f"{fresh} of {len(untils)} fresh"


def _soonest(score: Item, now: datetime) -> str:
    left = [until - now.timestamp() for until in score.get("valid_until", ()) if until]
    soon = [seconds for seconds in left if seconds > 0]
    return f"the first expires in {shown_duration(min(soon))}" if soon else "none is valid"


def _findings(answer: FleetAnswer, now: datetime) -> Iterator[ViewRow]:
    for item in answer.fleet.get("findings", ()):
        since = read_time(item.get("since"))
        age = shown_duration(max(0.0, (now - since).total_seconds())) if since else "-"
        names = item.get("names") or [item["name"]]
        yield ViewRow.of(
            item.get("severity", "error"),
            item["reason"],
            counted(item.get("count", 1), "object"),
            age,
            item["name"],
            details=[item["message"], f"Next: {item['next']}", ", ".join(names)],
        )


def _clusters(answer: FleetAnswer, _: datetime) -> Iterator[ViewRow]:
    for item in _sorted(answer.fleet.get("clusters", ())):
        obstacles = item.get("obstacles", ())
        hardware = ", ".join(f"{n} {model}" for model, n in item.get("hardware", {}).items())
        running = item.get("running", ())
        labels = (f"{key}={value}" for key, value in item.get("labels", {}).items())
        yield ViewRow.of(
            item["name"],
            obstacles[0]["reason"] if obstacles else item.get("health", "Unknown"),
            hardware or "-",
            counted(len(running), "workload"),
            details=[
                ", ".join(labels),
                *(f"{one['reason']}: {one['message']}" for one in obstacles),
                *(f"enforced: {one['policy']} {one['compliance']}" for one in item["enforced"]),
                *(f"{one['workload']}: {one['state']}: {one['message']}" for one in running),
            ],
        )


def _workloads(answer: FleetAnswer, _: datetime) -> Iterator[ViewRow]:
    for item in _sorted(answer.fleet.get("workloads", ())):
        places = item.get("places", {})
        states = sorted(set(places.values())) or ["NotPlaced"]
        yield ViewRow.of(
            item["name"],
            ", ".join(states),
            f"{len(places)} of {item.get('replicas', 1)}",
            item.get("requests", ""),
            ", ".join(places) or "-",
            details=[*(f"{name}: {how}" for name, how in places.items()), item["unplaced"]],
        )


def _rollouts(answer: FleetAnswer, _: datetime) -> Iterator[ViewRow]:
    if answer.rollouts is None:
        yield ViewRow.of("-", "-", "-", _REFUSED)
    for item in answer.rollouts or ():
        phase = "Paused" if item.get("paused") else item["phase"]
        waits = (one["message"] for one in item.get("waiting_for", ()))
        message = item.get("message", "")
        yield ViewRow.of(item["record"], phase, _step(item), message, details=[message, *waits])


def _step(rollout: Item) -> str:
    return f"step {rollout.get('step', 0)} of {len(rollout.get('steps', ()))}"


def _scorers(answer: FleetAnswer, _: datetime) -> Iterator[ViewRow]:
    for item in _sorted(answer.fleet.get("scorers", ())):
        clusters = item.get("clusters") or {}
        yield ViewRow.of(
            item["name"],
            "working" if item["working"] else item["reason"],
            f"{clusters.get('scoring', 0)} of {clusters.get('desired', 0)} score",
            f"every {item.get('interval_seconds', 0)}s",
            item.get("description", ""),
            details=[
                item["message"],
                *(f"{i['cluster']}: {i['reason']}: {i['message']}" for i in item["failing"]),
                item["remedy"],
            ],
        )


def _sorted(items: Iterable[Item]) -> list[Item]:
    return sorted(items, key=lambda item: natural(str(item["name"])))


VIEWS: Mapping[str, FleetView] = {
    "overview": FleetView(("", "how much", "what"), _overview),
    "findings": FleetView(("severity", "reason", "objects", "oldest", "first"), _findings),
    "clusters": FleetView(("cluster", "state", "hardware", "runs"), _clusters),
    "workloads": FleetView(("workload", "state", "places", "requests", "clusters"), _workloads),
    "rollouts": FleetView(("plan", "phase", "step", "what"), _rollouts),
    "scorers": FleetView(("scorer", "state", "clusters", "interval", "what"), _scorers),
}
