"""The commands `dsf optimizer`, `dsf plan` and `dsf mig`.

Shell: reads files and flags, prints. Imports heavy modules inside commands so that --help is fast.
"""
