"""Conversations with an assistant, as data: a question, the tool calls, and the facts of an answer.

`replay` makes the calls of each conversation against an embedded hub; `chat` lets a real model
choose the calls. `python -m tests.evals` (`make evals`) prints the calls and tokens of each
question, and `--transcript` the page docs/tutorials/assistant-transcript.md.
"""
