"""The demo: the development guide's story, end to end, on one machine."""
