"""The service: reads the hub, plans, writes what a plan says, and follows it.

Shell: `optimizer` is the door. `observe*`, `plan_records` and `score_history` read the hub and
Prometheus, `planner` makes plans, `plan_writer`, `rollouts` and `landing_watch` write.
Each decides nothing itself. May import every folder except `operations`, `api` and `cli`, and of
`dsf.agent` the client that reads Prometheus within limits.
"""
