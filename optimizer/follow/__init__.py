"""What becomes of a plan on the hub: its record, its rollout, where it landed, what is wrong.

Pure: observations, records and times go in; states, next steps, findings and text come out.
`record` is the lowest; `placement_status` compares; `rollout` and `overview` stand on both, and
`hub_health` on `overview`. May import `plan`, `transition` and the layers below them, and `dsf`.
"""
