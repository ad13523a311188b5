"""The sample scorer: the mean of each series. The smallest scorer, and the one to copy."""
