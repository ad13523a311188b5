"""A scorer's forecasts over history, against simple methods and against what came true.

Pure, except `replay` (files, HTTP, the clock).
May import `dsf.scorer_kit.scorer_target`, `dsf.agent`, `dsf.api` and, to draw, `dsf.cli`.
"""
