"""A scorer that goes mad at noon, from the agents over the hub to the optimizer's decisions."""

import pytest

from benchmarks.optimizer.untrusted_scorer import simulate

pytestmark = [pytest.mark.virtual_time, pytest.mark.exhaustive]


async def test_a_scorer_that_goes_mad_at_noon_costs_less_than_half_with_minimum_trust() -> None:
    day = await simulate()
    assert day.without.since > 1000
    assert day.with_trust.since < 0.5 * day.without.since
    # As long as it is sane, trust costs nothing.
    assert day.with_trust.before == pytest.approx(day.without.before, abs=1)
    assert (day.trust[12.0] or 0) > 0.9
    assert day.trust[14.0] == 0
