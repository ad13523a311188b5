"""The rules from scoring results to scores, when scores expire, and how both are explained.

Pure: time is passed in.
May import `dsf.agent.wire`, `dsf.agent.failure` and `dsf.api`.
"""
