"""The wire: custom resources, scorer summaries, the scoring API, conditions and names."""
