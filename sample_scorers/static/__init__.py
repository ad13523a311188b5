"""The static scorer: scores read from a table, without any source."""
