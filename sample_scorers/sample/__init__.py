# SPDX-License-Identifier: Apache-2.0
"""The sample scorer: the mean of each series. The smallest scorer, and the one to copy."""
