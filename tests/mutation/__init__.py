"""Changes the deciding code in small ways and counts the changes that the tests notice.

`make mutants` draws a seeded sample of mutants for each package of decisions. It runs only the
tests that execute the changed line, the fastest first, up to the first failure, in a copy of the
tree. A mutant that no test can notice is named in `equivalents.json` with its reason.

Why not a library: mutmut 3.8 draws no sample, skips decorated functions (our properties), changes
strings, which are mostly messages, and limits wall time, which a busy machine stretches.
cosmic-ray starts a new interpreter for each mutant, which costs more than the tests.
coverage.py records which test executes which line.
"""
