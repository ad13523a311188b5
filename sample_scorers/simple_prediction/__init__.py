"""The simple prediction scorer: forecasts each series over the next minutes."""
