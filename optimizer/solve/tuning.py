"""Every number that tunes the search, with its unit and its reason; imports nothing.

Each docstring begins with the unit. `python -m benchmarks.optimizer.tuning` measures each number
against its half and its double. docs/reference/tuning-figures.md has the figures, and
docs/explanation/optimizer-tuning.md says how much of them is chance. No number depends on the
machine or on the time left. A number that changes nothing at half and double is in the module that
reads it.
"""

# Which method

SINGLE_MODEL_VARIABLES = 300
"""Variables: up to so many, one model of the whole problem is quicker than the decomposition."""

TIE_BREAKING_ASSIGNMENTS = 200
"""Candidate assignments: up to so many, ties are broken by a second solve.

Beyond, the second solve can take ten times as long as the first.
"""

# Knapsacks

BAND_SUPPLY_SHARE = 0.6
"""Share of the largest supply of a band: smaller supplies are in the next one."""

LEAST_BAND_RESOURCES = 128
"""Resources: of a band at least, because each has the overhead of some calls of numpy."""

PARTITION_WIDTH = 64
"""Items of one size: from so many, the best are partitioned off before they are sorted."""

ALL_ITEMS_ASSIGNMENTS = 600_000
"""Candidate assignments: up to so many, all knapsack items stay in memory between pricings."""

SIFTING_MARGIN = 3
"""Multiples of what fits on a resource: items of each size, where all are too many for memory."""

# Subgradient descent

MOMENTUM = 0.7
"""Weight: of the previous direction, which damps the zigzag of subgradients."""

STEP_SHRINK = 0.7
"""Factor: of the step size when the bound stops to improve."""

STEP_PATIENCE = 8
"""Steps: without progress, before the step size shrinks."""

FEW_CLASSES_STEP_PATIENCE = 3
"""Steps: the same where classes are few; the master finds better prices sooner there."""

LEAST_STEP_SIZE = 5e-3
"""Step size, from 1: a descent ends below it."""

STEP_PROGRESS = 1e-5
"""Share of the bound: a step must lower it by this to count as progress."""

DUAL_TARGET_DROP = 0.01
"""Share of the bound: what a descent aims to lower it by."""

FIRST_PRICE_LEVELS = 9
"""Levels: of one price for all supply, tried for the start, twice."""

FLOOR_PRICE_LEVELS = ((16.0, 64.0), (4.0, 1.0))
"""Values of the best assignment: prices tried for the rows of higher priorities.

Upwards, then downwards, while the bound falls.
"""

SIFTED_STEPS = 15
"""Subgradient steps: over profitable items, before all are priced; see `SIFTING_MARGIN`."""

SIFTED_TARGET_DROP = 0.02
"""Share of the bound: what the first of these steps aim to lower it by."""

SIFTED_STEP_SHRINK = 0.87
"""Factor: of the step size when all items are priced, whether the bound is lower or not."""

# Column generation and masters

WARM_UP_STEPS = 30
"""Steps: of the Lagrangian dual before columns are collected; earlier ones are poor."""

FEW_CLASSES = 150
"""Classes of sites and workloads: up to so many, a master takes so little that it comes first."""

PRICE_BLEND = 0.5
"""Share of the way: from the best prices to the master's, where columns are priced as well.

Smoothing against the instability of column generation (Wentges 1997).
"""

# Diving

DIVING_STEPS = 24
"""Subgradient steps: between two rounds of fixing; the second half counts columns."""

DIVING_SHARE = 0.25
"""Share of the sites: fixed in a round."""

QUICK_DIVING_STEPS = 3
"""Subgradient steps: between rounds of a quick dive, which fixes all that fits in each round."""

DIVING_TARGET_DROP = 0.003
"""Share of the bound: what the steps of a dive aim to lower it by."""

LARGE_DIVING_TARGET_DROP = 0.01
"""Share of the bound: the same where all items are too many to be kept in memory."""

QUICK_DIVE_STEPS = (30, 100)
"""Steps of the Lagrangian dual: after which a quick dive makes a decision meanwhile."""

QUICK_DIVE_ASSIGNMENTS = 200_000
"""Candidate assignments: from so many, pricing takes so long that these dives pay."""

# Large neighbourhood search

NEIGHBOURHOOD_SITES = 10
"""Sites: of the first neighbourhood."""

NEIGHBOURHOOD_RANDOMNESS = 0.2
"""Mean regrets: weight of every site, so that sites without regret are chosen too."""

NEIGHBOURHOOD_PRICING_STEPS = 60
"""Subgradient steps: in a neighbourhood."""

NEIGHBOURHOOD_WARM_UP_STEPS = 10
"""Subgradient steps: those before columns are collected."""

NEIGHBOURHOOD_TARGET_DROP = 0.005
"""Share of the bound: what these steps aim to lower it by."""

NEIGHBOURHOOD_COLUMNS = 600
"""Columns: enumerated in a neighbourhood."""

# Closing the gap by column enumeration

FIRST_COLUMN_LIMITS = (300, 900, 2_700)
"""Columns: of the masters that follow the bound, one after the other."""

FIRST_COLUMN_LIMITS_REPEATED = (150, 300, 600)
"""Columns: the same where classes repeat; many columns are equally good there."""

LOSS_MARGIN = 1.5
"""Multiples of the loss up to which columns are complete: the cutoff of such a master."""

LEAST_LOSS = 4e-4
"""Share of the bound: columns complete up to less are too few for a decision."""

# Greedy

AMOUNT_PRICE = 0.25
"""Mean values of an amount: the price of an amount.

Without a price large workloads take the room of others that are worth more together.
"""
