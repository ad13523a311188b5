"""The LLM forecast scorer: a language model forecasts each series."""
