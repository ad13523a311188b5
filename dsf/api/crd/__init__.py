"""DynamicScorer and DynamicScoringConfig as pydantic models, and the CRDs generated from them.
Pure.
May import the modules of `dsf.api`, not `dsf.api.scoring`.
"""
