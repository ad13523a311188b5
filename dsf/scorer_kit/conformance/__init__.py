"""`dsf scorer check`: the checks of a scoring API, the calls that they make, and their report.

Pure, except `run`, which makes the calls: a check is data and a function of the outcomes.
May import `dsf.hub.snapshot`, and of `dsf.agent` what is pure; `run` may import all of both.
"""
