"""Reads AddOnPlacementScores: which are needed, which entry is which score, into an array.

Pure, like the whole snapshot folder; imports what the snapshot folder may import.
"""
