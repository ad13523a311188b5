"""The static scorer: scores from a table, without a source."""
