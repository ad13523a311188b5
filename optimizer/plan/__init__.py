"""The plan: the objects that a decision generates, the changes they imply, digest and text.

Pure: a plan is data; the service applies it. May import every folder except api and cli.
"""
