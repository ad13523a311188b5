"""A scorer's forecasts over history, against simple methods and against what came true.

Pure but for `replay` (HTTP) and `history_sources` (files, HTTP, the clock).
May import `dsf.scorer_kit.author_call`, `dsf.agent`, `dsf.api` and, to draw, `dsf.cli`.
"""
