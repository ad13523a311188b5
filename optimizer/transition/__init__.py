"""From what runs now to what was decided, in steps between which every rule holds."""
