"""The optimizer over HTTP: problems, limits of bodies and hosts, examples."""
