"""The resources that the embedded hub serves, and what a write makes of an object of each.
Pure.
May import `schema`.
"""
