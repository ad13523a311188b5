"""Heuristics: decisions without a proof, and improvements of a decision."""
