"""The prediction scorer: forecasts each series for the next ten minutes."""
