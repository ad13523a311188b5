"""What is written to an AddOnPlacementScore, whether this agent may, and when it tries again.

Pure: objects in, patches out; time and chance are passed in.
May import `dsf.agent.score`, `dsf.agent.failure` and `dsf.api`.
"""
