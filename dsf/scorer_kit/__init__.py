"""`dsf scorer`: what the author of a scoring API needs before it is registered.

Shell: it calls one scoring API, with the hub's prober and with the agent's own functions.
May import `dsf.hub`, `dsf.agent` and everything below them.
"""
