"""The watched hub, through its list and its answers."""
