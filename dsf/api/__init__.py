"""Wire types: custom resources, scorer summaries, the scoring API, conditions and fixed names.
Pure: values and functions of values, no I/O and no clock.
May import nothing else of ours. `dsf.api.scoring` may import `dsf.api.crd`.
"""
