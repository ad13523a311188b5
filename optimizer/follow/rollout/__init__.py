"""Rollouts: a plan's steps, what each step waits for, and what to write next.

Pure: data in, data out; reads no hub and no clock. May import `placement_status`, `plan` and every
layer below them, and `dsf`.
"""
