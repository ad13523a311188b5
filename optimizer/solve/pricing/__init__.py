"""Prices: Lagrangian relaxation, column generation, diving, reduced-cost fixing."""
