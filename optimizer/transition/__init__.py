"""From what runs now to what was decided, in stages between which every rule holds.

Pure: a stage is data, nothing here applies it.
Imports optimizer.model, optimizer.wire and optimizer.domain.
"""
