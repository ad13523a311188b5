"""What hub, agents and scoring APIs exchange: summaries, queries, results, dimensions, scores.
Pure.
May import `dsf.api.crd` and the modules of `dsf.api`.
"""
