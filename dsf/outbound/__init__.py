"""The rules and connections for calls to servers that the author of a scorer named.

Shell: looks names up and connects to the addresses that it checked. `destinations` is pure.
May import dsf.runtime, dsf.cli and dsf.api; dsf.hub and dsf.agent build on it.
"""
