# SPDX-License-Identifier: Apache-2.0
"""A template for scores that forecast: the last season, and quantiles of its past errors.

`combination` is another program with the same config: the forecast that the product ships. A copy
of this folder works without it.
"""
