"""Pages of docs/reference that are written from the code, and tests that they are current."""
