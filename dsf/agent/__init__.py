"""The scoring agent of one managed cluster."""
