"""Margins: what the objective loses without an assignment or a policy."""
