"""Candidate MIG policies for a fleet, and bounds over the layouts that have none."""
