"""The problem as blocks that few rows link: reduction, identical classes, knapsacks, columns.

Pure: no solver, no clock. Imports `optimizer.model`, `optimizer.domain` and
`optimizer.solve.tuning`.
"""
