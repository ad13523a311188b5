"""`dsf scorer`: what an author of a scorer needs before it is registered.

Shell around pure parts: it calls one scoring API, with the agent's own functions.
May import `dsf.hub`, `dsf.agent` and everything below them; `dsf.sim` for recordings.
"""
