"""The hub controller: registers scoring APIs and distributes them to managed clusters.

observe -> snapshot -> assess -> distribute -> report: each folder is one step. `plan` decides and
is pure; `run` and `secrets_controller` read and write; `cli` starts them.
Imports dsf.outbound and the layers below it.
"""
