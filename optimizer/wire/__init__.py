"""The JSON of requests and results as pydantic models, and what is wrong with a request."""
