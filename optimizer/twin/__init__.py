"""The twin: a fleet on a virtual clock, with the product's own parts inside.

Shell: `engine.play(scenario, seed)` runs a scenario and returns a `Played`. `scenario`, `played`
and `score_series` are pure. May import every other folder of the optimizer but `cli`, and, alone in
it, `policy_watcher` and all of `dsf`.
"""
