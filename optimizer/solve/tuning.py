"""Every number that tunes the search, with its unit and its reason; imports nothing.

Each docstring begins with the unit. `python -m benchmarks.optimizer.tuning` measures each number
against its half and its double. docs/reference/tuning-figures.md has the figures, and
docs/explanation/optimizer-tuning.md says how much of them is chance. No number depends on the
machine or on the time left. A number that changes nothing at half and double is in the module that
reads it.
"""

# Which method

SINGLE_MODEL_VARIABLES = 300
"""Variables: up to so many, one model of the whole problem is quicker than the decomposition.

Measured at 150 on `small`: 3 times the pricings.
"""

TIE_BREAKING_ASSIGNMENTS = 200
"""Candidate assignments: up to so many, ties are broken by a second solve.

Beyond, the second solve can take ten times as long as the first.

Measured: at 100 or 400 or 0 the pricings change by less than a tenth.
"""

# Knapsacks

BAND_SUPPLY_SHARE = 0.6
"""Share of the largest supply of a band: smaller supplies are in the next one.

Measured on one pricing of `cluster` 1000 x 5000: 11 instead of 20 ms of one band.
"""

LEAST_BAND_RESOURCES = 128
"""Resources: of a band at least, because each has the overhead of some calls of numpy.

Measured at 8 on one pricing of `uneven` 40 x 100: 1.15 instead of 0.5 ms.
"""

PARTITION_WIDTH = 64
"""Items of one size: from so many, the best are partitioned off before they are sorted.

Measured at 32 on `dist`: 1.7 times the pricings, value +0.1%.
"""

ALL_ITEMS_ASSIGNMENTS = 600_000
"""Candidate assignments: up to so many, all knapsack items stay in memory between pricings.

Measured at 0 on `prof`: 8.4 times the pricings.
"""

SIFTING_MARGIN = 3
"""Multiples of what fits on a resource: items of each size, kept where all are too many for memory.

Measured on the dual of `cluster` 300 x 1000, bound 59,911 in 2.3 CPU s: at 1, 59,947 in 1.5; at 6,
59,906 in 2.8.
"""

# Subgradient descent

MOMENTUM = 0.7
"""Weight: of the previous direction, which damps the zigzag of subgradients.

Measured at 0.0 on `running`: 1.2 times the pricings.
"""

STEP_SHRINK = 0.7
"""Factor: of the step size when the bound stops to improve.

Measured at 0.35 on `rand`: 0.65 times the pricings.
"""

STEP_PATIENCE = 8
"""Steps: without progress, before the step size shrinks.

Measured at 16 on `dist`: 1.2 times the pricings, value +0.1%.
"""

FEW_CLASSES_STEP_PATIENCE = 3
"""Steps: the same where classes are few; the master finds better prices sooner there.

Measured at 8 on `small`: 2 times the pricings.
"""

LEAST_STEP_SIZE = 5e-3
"""Step size, from 1: a descent ends below it.

Measured: at 0.0025 or 0.01 the pricings change by less than a tenth.
"""

STEP_PROGRESS = 1e-5
"""Share of the bound: a step must lower it by this to count as progress.

Measured at 2e-05 on `dist`: 0.88 times the pricings, value +0.2%.
"""

DUAL_TARGET_DROP = 0.01
"""Share of the bound: what a descent aims to lower it by.

Measured at 0.005 on `dist`: 1.3 times the pricings.
"""

FIRST_PRICE_LEVELS = 9
"""Levels: of one price for all supply, tried for the start, twice.

Measured at 4 on `running`: 3.4 times the pricings.
"""

FLOOR_PRICE_LEVELS = ((16.0, 64.0), (4.0, 1.0))
"""Values of the best assignment: prices tried for the rows of higher priorities.

Upwards, then downwards, while the bound falls.

Measured on `tiers`: without the last two, 0.68 times the pricings; with 4.0 alone 0.54 times; with
64.0 alone 0.56 times, bound +0.1%.
"""

SIFTED_STEPS = 15
"""Subgradient steps: over profitable items, where all are too many for memory; then all are priced.

Measured on the dual of `cluster` 300 x 1000, bound 59,911 in 2.3 CPU s: at 8, 59,917 in 1.4; at 30,
59,910 in 4.6.
"""

SIFTED_TARGET_DROP = 0.02
"""Share of the bound: what the first of these steps aim to lower it by.

Measured on the dual of `cluster` 1000 x 5000, bound 352,208 in 14.5 CPU s: 352,407 in 12.9 at 0.01.
"""

SIFTED_STEP_SHRINK = 0.87
"""Factor: of the step size each time that all items are priced, whether the bound is lower or not.

Measured on the dual of `cluster` 300 x 1000, bound 59,911 in 2.3 CPU s: at 0.75, 59,942 in 1.2; at
0.93, 59,911 in 5.6.
"""

# Column generation and masters

WARM_UP_STEPS = 30
"""Steps: of the Lagrangian dual before columns are collected; earlier ones are poor.

Measured: at 15 the pricings change by less than a tenth.
"""

FEW_CLASSES = 150
"""Classes of sites and workloads: up to so many, a master takes so little that it comes first.

Measured at 0 on `rand`: 10 times the pricings; at 75, 6.6 times. At 300 on `dist`: 0.82 times.
"""

PRICE_BLEND = 0.5
"""Share of the way: from the best prices to the master's, where columns are priced as well.

Smoothing against the instability of column generation (Wentges 1997).

Measured: at 0.25 or 1.0 the pricings change by less than a tenth.
"""

# Diving

DIVING_STEPS = 24
"""Subgradient steps: between two rounds of fixing; the second half counts columns.

Measured on `dist`: at 12, 0.74 times the pricings, value +0.2%; at 48, 1.4 times, value +0.1%.
Both values are within the gap of 0.5%.
"""

DIVING_SHARE = 0.25
"""Share of the sites: fixed in a round.

Measured on `dist`: at 0.125, 1.4 times the pricings, value +0.2%; at 0.5, 0.77 times, value +0.1%.
Both values are within the gap of 0.5%.
"""

QUICK_DIVING_STEPS = 3
"""Subgradient steps: between rounds of a quick dive, which fixes all that fits in each round.

Measured: at 2 or 6 the pricings change by less than a tenth.
"""

DIVING_TARGET_DROP = 0.003
"""Share of the bound: what the steps of a dive aim to lower it by.

Measured: at 0.0015 or 0.006 the pricings change by less than a tenth.
"""

LARGE_DIVING_TARGET_DROP = 0.01
"""Share of the bound: the same where all items are too many to be kept in memory.

Measured on the dive of `unusable` 1000 x 5000, as values of a bound of 384,836: 382,729; at 0.003
376,580, at 0.001 372,109.
"""

QUICK_DIVE_STEPS = (30, 100)
"""Steps of the Lagrangian dual: after which a quick dive makes a decision meanwhile.

Measured: at (15, 50) or (60, 200) or () the pricings change by less than a tenth.
"""

QUICK_DIVE_ASSIGNMENTS = 200_000
"""Candidate assignments: from so many, pricing takes so long that these dives pay.

Measured at 0 on `prof`: 1.2 times the pricings, value +0.1%.
"""

# Large neighbourhood search

NEIGHBOURHOOD_SITES = 10
"""Sites: of the first neighbourhood.

Measured at 5 on `dist`: 1.6 times the pricings.
"""

NEIGHBOURHOOD_RANDOMNESS = 0.2
"""Mean regrets: weight of every site, so that sites without regret are chosen too.

Measured at infinity on `dist`: 1.5 times the pricings, value +0.1%.
"""

NEIGHBOURHOOD_PRICING_STEPS = 60
"""Subgradient steps: in a neighbourhood.

Measured at 120 on `dist`: 1.2 times the pricings.
"""

NEIGHBOURHOOD_WARM_UP_STEPS = 10
"""Subgradient steps: those before columns are collected.

Measured: at 5 or 20 or 0 the pricings change by less than a tenth.
"""

NEIGHBOURHOOD_TARGET_DROP = 0.005
"""Share of the bound: what these steps aim to lower it by.

Measured: at 0.0025 or 0.01 the pricings change by less than a tenth.
"""

NEIGHBOURHOOD_COLUMNS = 600
"""Columns: enumerated in a neighbourhood.

Measured at 300 on `dist`: 1.2 times the pricings, value +0.1%.
"""

# Closing the gap by column enumeration

FIRST_COLUMN_LIMITS = (300, 900, 2_700)
"""Columns: of the masters that follow the bound, one after the other.

Measured at () on `rand`: 8.5 times the pricings, value -0.1%.
"""

FIRST_COLUMN_LIMITS_REPEATED = (150, 300, 600)
"""Columns: the same where classes repeat; many columns are equally good there.

Measured at () on `prof`: 4.3 times the pricings, value +0.1%.
"""

LOSS_MARGIN = 1.5
"""Multiples of the loss up to which columns are complete: the cutoff of such a master.

Measured: at 1.0 or 3.0 the pricings change by less than a tenth.
"""

LEAST_LOSS = 4e-4
"""Share of the bound: columns complete up to less are too few for a decision.

Measured at 0.0008 on `rand`: 4.7 times the pricings, value -0.1%.
"""

# Greedy

AMOUNT_PRICE = 0.25
"""Mean values of an amount: the price of an amount.

Without a price large workloads take the room of others that are worth more together.

Measured on the greedy start alone, 100 x 200 `dist`: at 0.0, 5% less value; at 0.5, 4% less; at
0.125, 4% more. The pricings of whole searches change by at most a twentieth.
"""
