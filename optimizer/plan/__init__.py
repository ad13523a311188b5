"""The plan: what a decision changes on the hub, as objects, a digest and text."""
