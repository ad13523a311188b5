"""The problem in block form: reduction, symmetry, columns, knapsacks, linking constraints."""
