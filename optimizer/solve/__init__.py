"""How a problem is solved: process isolation, decomposition, and solver adapters."""
