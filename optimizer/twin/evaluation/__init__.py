"""What runs of the twin were worth: hindsight, sweeps, recordings, tables and pictures.

Shell: `recorded_hub` reads, `sweep` runs. May import all that the twin may.
"""
