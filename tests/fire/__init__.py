"""Long hostile runs, and the table of promises that `make fire` prints.

A test in any folder joins with `@pytest.mark.fire(promise, how)`. The long tests in this folder
call a served optimizer on loopback with random requests and random tool calls.
"""
