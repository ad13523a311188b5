"""How many writes are in flight at once: few enough that the API server answers others as fast.
`concurrency_limit` is pure and decides; `write_limiter` is the shell that waits and measures.
May import `dsf.kube.errors`.
"""
