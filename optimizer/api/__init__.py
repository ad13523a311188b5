"""The optimizer over HTTP: routes, problem details, limits of bodies and hosts."""
