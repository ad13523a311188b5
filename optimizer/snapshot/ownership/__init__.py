"""Whose an object is: what a request may change, and what others enforce and use on its clusters.

Pure: objects in, values and issues out. Imports the readers of the folder above.
"""
