"""Rows of rules as a sparse matrix that is read column by column."""

from collections.abc import Iterable, Sequence

import numpy as np

from optimizer.domain.arrays import Floats, Ints
from optimizer.model.rules import Row


class RowMatrix:
    """Rows over numbered variables, in compressed sparse column form; `limits` [rows]."""

    def __init__(self, rows: Sequence[Row], columns: int) -> None:
        every = np.concatenate([np.empty(0, np.int64), *(row.columns for row in rows)])
        order = np.argsort(every, kind="stable")
        numbers = np.repeat(np.arange(len(rows)), [len(row.columns) for row in rows])
        amounts = np.concatenate([np.empty(0), *(row.coefficients for row in rows)])
        self._columns, self._rows, self._amounts = every[order], numbers[order], amounts[order]
        self._starts: list[int] = np.searchsorted(self._columns, np.arange(columns + 1)).tolist()
        self.limits: Floats = np.array([row.limit for row in rows], np.float64)

    def column(self, number: int) -> tuple[Ints, Floats]:
        """Return the rows in which a variable has an entry, and its coefficients there."""
        own = slice(self._starts[number], self._starts[number + 1])
        return self._rows[own], self._amounts[own]

    def total(self, signed: Iterable[tuple[int, int]]) -> tuple[Ints, Floats]:
        """Return the rows of some variables, and the sums of sign times coefficient there."""
        parts = [(sign, *self.column(number)) for number, sign in signed]
        rows = np.concatenate([np.empty(0, np.int64), *(rows for _, rows, _ in parts)])
        amounts = np.concatenate([np.empty(0), *(sign * amounts for sign, _, amounts in parts)])
        distinct, inverse = np.unique(rows, return_inverse=True)
        return distinct, np.bincount(inverse, amounts, len(distinct)).astype(np.float64)

    def columns(self, first: int, end: int) -> tuple[Ints, Ints, Floats]:
        """Return the entries of variables from `first` up to `end`: variables, rows, amounts."""
        own = slice(self._starts[first], self._starts[end])
        return self._columns[own], self._rows[own], self._amounts[own]
