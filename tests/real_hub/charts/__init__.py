"""The charts on a real hub: validated by its API server, installed, upgraded, refused by helm."""
