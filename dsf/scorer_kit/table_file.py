"""Reads series from a table: a CSV or Parquet file with a row for each sample.

Shell: files.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from dsf.api.untrusted_text import listed
from dsf.scorer_kit.series_file import MOST_BYTES, Samples, UnusableFile

TIMES = ("time", "timestamp")
"""Names of the column of times."""

_VALUE, _TRUTH = "value", "truth"

_LATEST = 1e11
"""Unix seconds of the year 5138: a larger number counts milliseconds or less."""


@dataclass(frozen=True, slots=True)
class SeriesTable:
    """The series of a table; `truth` has the same series, and is None without such a column.

    `step` is the usual number of seconds between two samples of a series.
    """

    step: int
    series: Samples
    truth: Samples | None


def read_table(path: Path) -> SeriesTable:
    """Return the series in a table. Raises UnusableFile.

    Columns are `time` (unix seconds, or ISO 8601, in UTC unless it says otherwise), `value`, maybe
    `truth`, and a column for each label. An empty cell is a hole.
    """
    frame = _frame(path)
    time = next((name for name in TIMES if name in frame.columns), "")
    if not time or _VALUE not in frame.columns:
        raise UnusableFile(
            f"{path} needs the columns time and value, and one for each label; it has"
            f" {listed(frame.columns) or 'none'}"
        )
    frame = frame.drop_nulls(time)
    if frame.is_empty():
        raise UnusableFile(f"{path} has no rows")
    labels = [name for name in frame.columns if name not in {time, _VALUE, _TRUTH}]
    values = [name for name in (_VALUE, _TRUTH) if name in frame.columns]
    for name in values:
        if not frame[name].dtype.is_numeric() and frame[name].dtype != pl.Null:
            raise UnusableFile(f"{path}: the column {name} has values that are not numbers")
    frame = frame.with_columns(_seconds(path, frame[time]).alias(time), pl.col(labels).cast(str))
    frame = frame.sort(time)
    if frame.select(time, *labels).is_duplicated().any():
        raise UnusableFile(
            f"{path} has two rows with the same time and labels: add a column with a label that"
            " tells the series apart"
        )
    series = frame.partition_by(labels, maintain_order=True) if labels else [frame]
    known = {name: [_samples(one, labels, time, name) for one in series] for name in values}
    return SeriesTable(_step(series, time), known[_VALUE], known.get(_TRUTH))


def _frame(path: Path) -> pl.DataFrame:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise UnusableFile(f"{path} is larger than {MOST_BYTES >> 20} MiB")
        if path.suffix.lower() == ".parquet":
            return pl.read_parquet(path)
        return pl.read_csv(path, try_parse_dates=True, infer_schema_length=None)
    except OSError as error:
        raise UnusableFile(f"{path} can't be read: {error.strerror or error}") from error
    except pl.exceptions.PolarsError as error:
        said = str(error).partition("\n")[0]
        raise UnusableFile(f"{path} is no {path.suffix[1:]} table: {said}") from error


def _seconds(path: Path, times: pl.Series) -> pl.Series:
    """Return times in unix seconds."""
    seconds = pl.Series([-1.0])
    if times.dtype.is_temporal() and times.dtype != pl.Time:
        seconds = times.cast(pl.Datetime("ms")).dt.epoch("ms") / 1000
    elif times.dtype.is_numeric():
        seconds = times.cast(pl.Float64)
    if not seconds.is_between(0, _LATEST).all():
        raise UnusableFile(
            f"{path}: the column {times.name} needs unix seconds, or times such as"
            " 2026-03-01T12:00:00Z, from 1970 on"
        )
    return seconds


def _samples(
    one: pl.DataFrame, labels: Sequence[str], time: str, value: str
) -> tuple[Mapping[str, str], Sequence[tuple[float, float]]]:
    metric = {name: str(found) for name in labels if (found := one[name][0]) is not None}
    known = one.select(time, pl.col(value).cast(pl.Float64)).drop_nulls()
    return metric, list(known.iter_rows())


def _step(series: Sequence[pl.DataFrame], time: str) -> int:
    """Return the median of the seconds between two samples, at least 1."""
    between = pl.concat([one[time].diff().drop_nulls() for one in series])
    usual = between.median()
    return max(round(usual), 1) if isinstance(usual, float) else 1
