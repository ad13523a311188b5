"""The earlier release, 0.1.0: its charts, which are kept here as packages, and its code.

`helm package` made the packages from the charts of `code.COMMIT`. The code is read from the
repository's history, because a copy would be larger than all packages together.
"""
