"""What is broken in a fleet, since when, from what cause, and the next step."""
