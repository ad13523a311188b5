"""Families of instances from other generators than `benchmarks.optimizer.instances`.

Pure. May import the optimizer and `benchmarks.optimizer`.
"""
