"""The placement problem as an integer program: parameters, predicates, rules, formulation, states.

Pure: numpy arrays and frozen values; no solver is called here.
Imports optimizer.wire and optimizer.domain.
"""
