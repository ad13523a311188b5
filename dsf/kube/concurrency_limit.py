"""The limit of writes in flight: additive increase, multiplicative decrease (AIMD).

The limit starts at its minimum, doubles until the latency of writes first rises (slow start), and
then grows by one while the latency stays near its floor. It shrinks when the latency rises or the
API server refuses. The floor is the latency with the fewest writes in flight, whatever load others
cause. So our writes raise the latency of an API server at most by a factor, and an API server that
others load does not make us slower than one write at a time. Because the load of others changes,
the limit starts again after some writes, and after a time without any.

Sources: D.-M. Chiu and R. Jain 1989 (AIMD); L. Brakmo and L. Peterson 1995 (TCP Vegas: latency
against its floor instead of losses); RFC 2861 (slow start after idle time); N. Cardwell et al. 2016
(BBR: the floor is measured again from time to time).
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
"""Writes after which the floor is learnt again. It costs eight writes one at a time."""
IDLE_SECONDS = 10.0
"""Time without writes after which a floor is out of date."""


@dataclass(frozen=True, slots=True)
class ConcurrencyBounds:
    """Bounds of the limit, and how many times its floor the median latency may be."""

    minimum: int = 1
    maximum: int = 32
    latency_factor: float = 2.0


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
    ignored. `writes` counts the samples of all windows since the start.
    """

    current: int
    floor_seconds: float | None = None
    doubles: bool = True
    epoch: int = 0
    writes: int = 0
    latencies: tuple[float, ...] = ()
    most_in_flight: int = 0


def after_write(
    limit: ConcurrencyLimit, sample: WriteSample, bounds: ConcurrencyBounds
) -> ConcurrencyLimit:
    """Return the limit after a write has ended."""
    if sample.epoch != limit.epoch:
        return limit
    if sample.refused:
        return _decreased(limit, REFUSED, bounds)
    latencies = (*limit.latencies, sample.seconds)
    most = max(limit.most_in_flight, sample.in_flight)
    if len(latencies) < max(WINDOW, limit.current):
        return replace(limit, latencies=latencies, most_in_flight=most)
    if limit.writes + len(latencies) >= RELEARN_WRITES:
        return restarted(limit, bounds)
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
    if latency > bounds.latency_factor * lowest:
        return _decreased(judged, SHRINK, bounds)
    if not reached:
        return judged
    grown = 2 * limit.current if limit.doubles else limit.current + 1
    return replace(judged, current=min(grown, bounds.maximum))


def restarted(limit: ConcurrencyLimit, bounds: ConcurrencyBounds) -> ConcurrencyLimit:
    """Return the limit with which the floor is learnt again."""
    return ConcurrencyLimit(bounds.minimum, epoch=limit.epoch + 1)


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
    )
