"""DynamicScorer, DynamicScoringConfig and PlacementPlan as pydantic models, and their CRDs.
Pure.
May import the modules of `dsf.api`, not `dsf.api.scoring`.
"""
