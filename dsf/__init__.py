"""Dynamic Scoring Framework: fresh scores for Open Cluster Management fleets."""

__version__ = "0.2.0"
