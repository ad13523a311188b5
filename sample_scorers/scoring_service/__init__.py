# SPDX-License-Identifier: Apache-2.0
"""What all scorers here share, and what a copy of one takes along: HTTP around a pure function.

`wire` has the documents of the scoring API, `application` makes an ASGI application of a config and
a function (/healthz, /config, /scoring, /metrics, problem details, limits), and `program` serves it
from a command line. It imports the packages of its `requirements.txt` only, so it can be copied.
"""
