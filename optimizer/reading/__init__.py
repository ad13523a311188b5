"""From the hub's objects, or from files, to the fleet that a request speaks of."""
