"""The tutorials, typed from top to bottom on a hub of their own; containers are processes."""
