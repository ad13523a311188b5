"""A real OCM hub on this machine: real programs, real certificates, no containers."""
