"""The record of applied plans: the PlacementPlans of a namespace, their history, and rollback.

Pure: plans and objects go in, objects, changes and texts come out; times are arguments.
May import `plan` and every layer below it, and `dsf`; `service.plan_records` writes what it says.
"""
