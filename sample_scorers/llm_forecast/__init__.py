"""The LLM forecast scorer: asks a language model to forecast each series."""
