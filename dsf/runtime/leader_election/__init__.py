"""Leader election over one Lease, by the rules of client-go.
`lease` decides (pure), `leader_elector` reads and writes the Lease (shell).
May import the modules of `dsf.runtime`, `dsf.kube` and `dsf.api`.
"""
