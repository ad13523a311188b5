"""The guides are read without running anything: what a step needs comes from a step before.

`typed_calls` lets bash type the commands where functions stand for all programs that reach
something, and returns their calls. `clusters` is what the reader has. `findings` and
`kubectl_calls` follow the calls and say what is missing, with the line.
"""
