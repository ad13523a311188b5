"""The placement problem as an integer program: terms, rules, predicates, formulation."""
