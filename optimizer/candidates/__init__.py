"""Candidate policies for the GPUs of a fleet, and bounds on what omitted layouts are worth.

Pure: fleets go in, fleets with candidates and bounds come out.
Imports optimizer.model and optimizer.domain.
"""
