"""`dsf simulate`: scenarios and recordings, played on a twin of the fleet.

Shell: reads files and flags, prints. Imports heavy modules inside commands so that --help is fast.
"""
