"""`dsf top`: a fleet live in the terminal, from the HTTP API of an optimizer.

`fleet_tables` is pure; `fleet_reader` follows GET /fleet; `terminal`, which alone needs the extra
`top`, shows it with Textual.
"""
