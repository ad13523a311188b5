"""What became of a PlacementOptimization: its status, and what was approved of it.

Pure. May import its neighbours in `follow`, and what `follow` may import.
"""
