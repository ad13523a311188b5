"""How a problem is solved: reductions, prices, search, and a core left to the solver."""
