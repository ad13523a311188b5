"""Trade-offs: dual prices of binding limits, and Pareto sets of several scores.

Pure: linear programs are solved by a function that the caller passes in (`solver_ports`).
May import `optimizer.model` and what is below it.
"""
