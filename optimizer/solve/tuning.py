"""Every number that tunes the search, with its unit and its reason; imports nothing.

Each docstring begins with the unit. `python -m benchmarks.optimizer.tuning` measures each number
against its half and its double. Apart from the shares of time, no number depends on the machine or
on the time that is left.
"""

# Tolerances

VALUE_TOLERANCE = 1e-6
"""Objective units: values closer than this are equal, because solvers round."""

AMOUNT_TOLERANCE = 1e-9
"""Resource units: a shortage below this is rounding."""

ROW_TOLERANCE = 1e-7
"""Units of a linking row, whose largest coefficient is 1: a smaller violation is rounding."""

BOUND_TOLERANCE = 1e-9
"""Objective units: a bound closer than this to the incumbent is reached."""

# Which method

SINGLE_MODEL_VARIABLES = 300
"""Variables: up to so many, one model of the whole problem is quicker than the decomposition."""

TIE_BREAKING_ASSIGNMENTS = 200
"""Candidate assignments: up to so many, ties are broken by a second solve.

Beyond, the second solve can take ten times as long as the first.
"""

MODES_PER_SITE = 1_000
"""Modes of one site: up to so many, a problem is decomposed; they multiply with the pools."""

RESTRICTED_CORE_VARIABLES = 20_000
"""Variables left by reduced-cost fixing: up to so many, a solver gets the compact model."""

FLOOR_ROW_VARIABLES = 2_000_000
"""Variables: up to so many, the value of a higher priority becomes a linking row."""

# Time

WRITING_SECONDS = 1e-4
"""Seconds per variable: what writing a model may take; with less time it is not begun."""

FILLING_SECONDS = 3e-8
"""Seconds per workload and resource: what filling takes before it can be stopped."""

TIER_TIME_SHARE = 0.5
"""Share of the time left: for a priority that others follow."""

FIXED_TIER_TIME_SHARE = 0.2
"""Share of a tier's time: for the search in which higher priorities stay where they are."""

FLOOR_PRICES_TIME_SHARE = 0.3
"""Share of the time then left: for the first prices of the rows of higher priorities."""

REPORT_TIME_SHARE = 0.05
"""Share of the time: reports of improved decisions take at most this."""

STEP_OVERRUN = 0.04
"""Share of the time limit: one step may exceed the limit by this."""

SOLVER_CALL_SECONDS = 0.3
"""Seconds: a longer step is a solver call, which keeps to its own time limit."""

# Knapsacks

EXACT_UNITS = 512
"""Units of the largest supply: up to so many, amounts are exact; time grows with the units."""

APPROXIMATE_UNITS = 64
"""Units of the largest supply: where amounts are rounded; more hardly lower the bound."""

LARGEST_DENOMINATOR = 1_000
"""Denominator: of amounts at most (millicores), or they are rounded."""

COMPARED_SUMS = 200_000
"""Sums: compared at once, so that numpy's overhead is small and the array stays in the cache."""

PARTITION_WIDTH = 64
"""Items of one size: from so many, the best are partitioned off before they are sorted."""

ALL_ITEMS_ASSIGNMENTS = 600_000
"""Candidate assignments: up to so many, all knapsack items stay in memory between pricings."""

PRICED_CELLS = 4_000_000
"""Cells (workload, resource): of a slice of resources that is priced at once, 32 MB."""

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

NEGLIGIBLE_BOUND = 0.01
"""Share of the largest value: a lower bound is reduced in absolute steps, not in shares."""

DUAL_TARGET_DROPS = (0.01, 0.003)
"""Shares of the bound: what the first and the second descent aim to lower it by."""

SECOND_DESCENT_GAIN = 2e-4
"""Share of the bound: what a descent must gain for another one to follow."""

FIRST_PRICE_LEVELS = 9
"""Levels: of one price for all supply, tried for the start, twice."""

FLOOR_PRICE_LEVELS = ((16.0, 64.0), (4.0, 1.0))
"""Values of the best assignment: prices tried for the rows of higher priorities.

Upwards, then downwards, while the bound falls.
"""

# Column generation and masters

WARM_UP_STEPS = 30
"""Steps: of the Lagrangian dual before columns are collected; earlier ones are poor."""

FEW_CLASSES = 150
"""Classes of sites and workloads: up to so many, a master takes so little that it comes first."""

MASTER_ROUNDS = 40
"""Masters: that column generation solves at most."""

MASTER_COLUMNS = 3_000
"""Columns: of one of these masters."""

MASTER_GAP = 1e-6
"""Relative gap: between master and bound, at which column generation ends."""

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

QUICK_DIVE_STEPS = (30, 100)
"""Steps of the Lagrangian dual: after which a quick dive makes a decision meanwhile."""

QUICK_DIVE_ASSIGNMENTS = 200_000
"""Candidate assignments: from so many, pricing takes so long that these dives pay."""

# Large neighbourhood search

NEIGHBOURHOOD_FAILURES = 12
"""Neighbourhoods: so many in a row without an improvement end the search."""

NEIGHBOURHOOD_SITES = 10
"""Sites: of the first neighbourhood."""

LEAST_NEIGHBOURHOOD_SITES = 2.0
"""Sites: of the smallest neighbourhood."""

NEIGHBOURHOOD_GROWTH = 1.4
"""Factor: a neighbourhood grows by it when it is proven, and shrinks when it is not."""

NEIGHBOURHOOD_RANDOMNESS = 0.2
"""Mean regrets: weight of every site, so that sites without regret are chosen too."""

NEIGHBOURHOOD_PRICING_STEPS = 60
"""Subgradient steps: in a neighbourhood."""

NEIGHBOURHOOD_WARM_UP_STEPS = 10
"""Subgradient steps: those before columns are collected."""

NEIGHBOURHOOD_TARGET_DROP = 0.005
"""Share of the bound: what these steps aim to lower it by."""

NEIGHBOURHOOD_NODES = 50
"""Branch-and-bound nodes: of the master of a neighbourhood."""

NEIGHBOURHOOD_COLUMNS = 600
"""Columns: enumerated in a neighbourhood."""

NEIGHBOURHOOD_IMPROVEMENT = 1e-9
"""Share of the value: a decision must be better by this to be an improvement."""

# Closing the gap by column enumeration

FIRST_COLUMN_LIMITS = (300, 900, 2_700)
"""Columns: of the masters that follow the bound, one after the other."""

FIRST_COLUMN_LIMITS_REPEATED = (150, 300, 600)
"""Columns: the same where classes repeat; many columns are equally good there."""

LAST_COLUMN_LIMIT = 20_000
"""Columns: of the master that is to prove the optimum."""

LAST_COLUMN_LIMIT_REPEATED = 2_000
"""Columns: the same where classes repeat and the compact model, small then, proves sooner."""

SMALL_CORE = 150
"""Sites and workloads, each counted: up to so many, that compact model is small."""

RESTRICTED_MASTER_NODES = 200
"""Branch-and-bound nodes: of a master that lacks columns, so proves little."""

LOSS_MARGIN = 1.5
"""Multiples of the loss up to which columns are complete: the cutoff of such a master."""

LEAST_LOSS = 4e-4
"""Share of the bound: columns complete up to less are too few for a decision."""

COARSE_GAP = 1e-3
"""Relative gap: from it on, only decisions that close it are searched for."""

ENUMERATED_CELLS = 1_500_000
"""Cells: of the completion bounds of modes that are enumerated at once, 12 MB."""

# Near-optimal decisions of explanations

NEAR_OPTIMAL_COLUMNS = 12_000
"""Columns: up to so many, a choice among them takes seconds."""

NEAR_OPTIMAL_ASSIGNMENTS = 100_000
"""Candidate assignments: up to so many, prices are worth their time for explanations."""

NEAR_OPTIMAL_CLASSES = 600
"""Classes of sites and workloads: likewise."""

FIRST_LOSS = 2e-4
"""Share of the optimum: the loss up to which the first columns are enumerated."""

LOSS_GROWTH = 3
"""Factor: of the loss from one enumeration to the next."""

ALTERNATIVE_SEARCH_SECONDS = 2.0
"""Seconds: of a search for an equally good decision without one assignment."""

# Greedy

AMOUNT_PRICE = 0.25
"""Mean values of an amount: the price of an amount.

Without a price large workloads take the room of others that are worth more together.
"""
