"""From hub objects, or from files, to the fleet that a request speaks of."""
