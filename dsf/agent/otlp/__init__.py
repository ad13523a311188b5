"""Receiving OTLP metrics: an agent's own short memory of what programs send it.

Imported only by an agent that is told to receive, since the messages cost memory.
"""
