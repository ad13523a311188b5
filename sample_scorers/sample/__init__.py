"""The sample scorer: the mean of each series, the smallest scorer that does real work."""
