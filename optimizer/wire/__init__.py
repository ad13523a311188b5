"""The JSON of requests and results as pydantic models, and the problems of a request.

Pure: validation only. Imports domain and dsf.
"""
