"""What is kept of received data points: for each scorer the series that its query selects.

Pure: state in memory, no I/O; time is passed in.
May import `dsf.agent.wire`, `dsf.agent.schedule` and `dsf.api`.
"""
