"""The commands of the optimizer: its service, plans, rollouts, and looks at a hub.

Shell: reads files and flags, prints. Imports heavy modules inside commands so that --help is fast.
"""
