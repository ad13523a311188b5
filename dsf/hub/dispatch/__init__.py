"""The dispatcher: nominates MultiKueue's worker clusters for the Workloads of Kueue, by scores.

`dispatcher` and `cli` do I/O, `highs` calls a solver, the others are pure. May import what
`dsf.hub` may, and of it only the flags of leader election.

Sources: https://kueue.sigs.k8s.io/docs/concepts/multikueue/; pkg/controller/workloaddispatcher and
pkg/controller/admissionchecks/multikueue of sigs.k8s.io/kueue v0.17.0.
"""
