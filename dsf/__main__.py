"""`python -m dsf`."""

from dsf.cli import main

main()
