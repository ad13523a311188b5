"""The answer of `dsf simulate`: the figures of each controller and setting."""

from typing import Literal

from pydantic import Field

from optimizer.wire.base import Name, ResultPart, Sentence, Text


class Estimate(ResultPart):
    """A mean over seeds, and half of its 95% confidence interval; null where there is one seed."""

    mean: float
    half_interval: float | None = None


class SimulatedRow(ResultPart):
    """The runs of one controller and setting."""

    controller: Literal["Kept", "Naive", "Static", "Recorded"]
    setting: dict[Name, Name]
    value: Estimate = Field(description="Mean over time of what runs, by the true scores.")
    regret_percent: Estimate | None = Field(
        description="How much less than hindsight's best it is, in percent of that."
    )
    regret_within_budgets_percent: Estimate | None = Field(
        description="The same against the best that keeps the budgets of moves."
    )
    moves: Estimate = Field(description="Replicas that left a cluster for another.")
    moves_for_score: Estimate = Field(description="Those of them whose cluster was not lost.")
    uncovered_minutes: Estimate = Field(description="Of replicas that were wanted and did not run.")
    recovery_seconds: Estimate | None = Field(
        description="From the end of the grace of a lost cluster until all of its replicas run"
        " elsewhere, the longest; null: none was lost, or none recovered."
    )
    not_recovered: int = Field(description="Lost clusters whose replicas did not all run again.")
    totals: dict[Name, Estimate] = Field(description="Sums of scores that are rates per hour.")
    plans: Estimate


class SimulationResult(ResultPart):
    """The answer of `dsf simulate`."""

    description: Text
    hours: float
    seeds: tuple[int, ...]
    best_value: Estimate | None = Field(description="Mean over time of hindsight's best plans.")
    best_value_within_budgets: Estimate | None
    hindsight_step_seconds: float | None
    rows: tuple[SimulatedRow, ...]
    units: dict[Name, Name] = Field(description="The units of `totals`.")
    notes: tuple[Sentence, ...] = ()
