"""Which scorers run, and when each of their rounds starts.

Pure: time is passed in, and what is to be done is returned as commands.
May import `dsf.api` only.
"""
