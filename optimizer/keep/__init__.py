"""What a PlacementOptimization decides: when to look, what a plan may move, and whether to take it.

Pure: time, history and scores are arguments. Imports model, wire, domain and dsf.
"""
