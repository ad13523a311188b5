"""Example scorers, and the modules that they share.

Shared are the HTTP service (`service`, `problem_details`, `bearer_token`), the
documents of the scoring API (`wire`), and the command line (`program`). To write a scorer, copy
this folder, keep the shared modules, and delete the scorers that you do not need. The folder
imports nothing else of this repository, and uses relative imports, so the copy has any name.
"""
