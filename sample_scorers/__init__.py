"""Example scorers, and the modules that they share.

The shared modules are the HTTP service (`service`, `problem_details`, `early_refusal`,
`bearer_token`), the documents of the scoring API (`wire`), and the command line (`program`). They
are the same for every scorer.

To write a scorer, copy this folder, keep the shared modules, and delete the scorers that you do not
need. The folder imports nothing else of this repository, and uses relative imports inside, so the
copy works under any package name.
"""
