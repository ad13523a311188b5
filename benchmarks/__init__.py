"""Benchmarks: what the product costs, as ratios to a baseline that the same run measures.

`make benchmarks` runs all of them. They may import everything, and nothing but tests imports them.
"""
