"""The placement problem as an integer program: parameters, predicates, rules, formulation, states.

Pure: numpy arrays and frozen values; no solver is called here.
Imports optimizer.snapshot, optimizer.wire, optimizer.mig and optimizer.domain.
"""
