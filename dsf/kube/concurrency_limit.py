"""The limit of writes in flight: additive increase, multiplicative decrease (AIMD).

The limit starts at its minimum, doubles until the latency of writes first rises (slow start), and
then grows by one while the latency stays near its floor. It shrinks when the latency rises or the
API server refuses. The floor is the latency with the fewest writes in flight, whatever load others
cause. So our writes raise the latency of an API server at most by a factor, and an API server that
others load does not make us slower than one write at a time. The limit stays where one write more
would raise the latency by more than that.

Because the load of others changes, what was learnt is checked after some writes, and after a time
without any: writes are sent at the minimum. If they take about as long as the floor, the limit is
what it was. Otherwise the API server has changed, and the limit starts again.

Sources: D.-M. Chiu and R. Jain 1989 (AIMD); L. Brakmo and L. Peterson 1995 (TCP Vegas: latency
against its floor instead of losses, and a band in which the window stays); RFC 2861 (a window that
was not used is validated again); N. Cardwell et al. 2016 (BBR: the floor is measured again from
time to time).
"""

from dataclasses import dataclass, replace
from statistics import median

WINDOW = 8
"""Latencies that decide about a limit, or as many as the limit if that is larger: their median does
not follow one slow write or one new connection."""
SHRINK = 0.75
"""Factor of the limit after the latency rose."""
REFUSED = 0.5
"""Factor of the limit after a refusal, a server error or no answer."""
RELEARN_WRITES = 500
"""Writes after which the floor is measured again. It costs eight writes one at a time."""
IDLE_SECONDS = 10.0
"""Time without writes after which a limit is checked by one write, or by up to eight."""


@dataclass(frozen=True, slots=True)
class ConcurrencyBounds:
    """Bounds of the limit, and how many times its floor the median latency may be."""

    minimum: int = 1
    maximum: int = 32
    latency_factor: float = 1.5


@dataclass(frozen=True, slots=True)
class WriteSample:
    """A write that has ended.

    `epoch` is the limit's when the write was sent. `in_flight` counts the writes in flight then,
    this one included. `refused` means that the API server was too busy, failed or did not answer.
    """

    epoch: int
    in_flight: int
    seconds: float
    refused: bool = False


@dataclass(frozen=True, slots=True)
class ConcurrencyLimit:
    """How many writes may be in flight, and the latencies that were measured so far.

    `floor_seconds` is None before the first window of samples. `doubles` is true in slow start.
    `epoch` counts the decreases: samples of an earlier epoch speak of a larger limit and are
    ignored. `writes` counts the samples of all windows since the floor was measured. `learnt` is
    the limit that is being checked, 0 if none is; `idle` tells that this is after a time without
    writes, when one write at the latency of the floor is enough.
    """

    current: int
    floor_seconds: float | None = None
    doubles: bool = True
    epoch: int = 0
    writes: int = 0
    latencies: tuple[float, ...] = ()
    most_in_flight: int = 0
    learnt: int = 0
    idle: bool = False


def after_write(
    limit: ConcurrencyLimit, sample: WriteSample, bounds: ConcurrencyBounds
) -> ConcurrencyLimit:
    """Return the limit after a write has ended."""
    if sample.epoch != limit.epoch:
        return limit
    if sample.refused:
        return _decreased(limit, REFUSED, bounds)
    if limit.idle and _is_about(sample.seconds, limit.floor_seconds, bounds):
        return _resumed(limit)
    latencies = (*limit.latencies, sample.seconds)
    most = max(limit.most_in_flight, sample.in_flight)
    if len(latencies) < max(WINDOW, limit.current):
        return replace(limit, latencies=latencies, most_in_flight=most)
    if limit.writes + len(latencies) >= RELEARN_WRITES:
        return checked(limit, bounds)
    return _judged(limit, latencies, bounds, reached=most >= limit.current)


def _judged(
    limit: ConcurrencyLimit,
    latencies: tuple[float, ...],
    bounds: ConcurrencyBounds,
    *,
    reached: bool,
) -> ConcurrencyLimit:
    """Return the limit after a window; one that was not reached does not grow."""
    latency, lowest = median(latencies), limit.floor_seconds
    # With the fewest writes in flight, the latency is what others and the server itself cause.
    if lowest is None or limit.current <= bounds.minimum or latency < lowest:
        lowest = latency
    judged = replace(
        limit,
        floor_seconds=lowest,
        writes=limit.writes + len(latencies),
        latencies=(),
        most_in_flight=0,
    )
    if limit.learnt:
        if _is_about(latency, limit.floor_seconds, bounds):
            return _resumed(judged)
        judged = replace(judged, learnt=0, idle=False, doubles=True)
    most = bounds.latency_factor * lowest
    if latency > most:
        return _decreased(judged, SHRINK, bounds)
    if not reached:
        return judged
    # Writes that wait for each other wait longer with one more, by its share.
    waiting = latency > (lowest + most) / 2
    if waiting and latency * (limit.current + 1) / limit.current > most:
        return replace(judged, doubles=False)
    grown = 2 * limit.current if judged.doubles and not waiting else limit.current + 1
    return replace(
        judged, current=min(grown, bounds.maximum), doubles=judged.doubles and not waiting
    )


def checked(
    limit: ConcurrencyLimit, bounds: ConcurrencyBounds, *, idle: bool = False
) -> ConcurrencyLimit:
    """Return the limit at its minimum, where it is decided whether what was learnt still holds."""
    return replace(
        limit,
        current=bounds.minimum,
        epoch=limit.epoch + 1,
        writes=limit.writes if idle else 0,
        latencies=(),
        most_in_flight=0,
        learnt=max(limit.current, limit.learnt),
        idle=idle,
    )


def _resumed(limit: ConcurrencyLimit) -> ConcurrencyLimit:
    return replace(
        limit, current=limit.learnt, latencies=(), most_in_flight=0, learnt=0, idle=False
    )


def _is_about(seconds: float, floor: float | None, bounds: ConcurrencyBounds) -> bool:
    """Tell whether a latency at the minimum is that of the floor, up to the factor."""
    if floor is None:
        return False
    return floor / bounds.latency_factor <= seconds <= floor * bounds.latency_factor


def _decreased(
    limit: ConcurrencyLimit, factor: float, bounds: ConcurrencyBounds
) -> ConcurrencyLimit:
    return replace(
        limit,
        current=max(bounds.minimum, int(limit.current * factor)),
        doubles=False,
        epoch=limit.epoch + 1,
        latencies=(),
        most_in_flight=0,
        learnt=0,
        idle=False,
    )
