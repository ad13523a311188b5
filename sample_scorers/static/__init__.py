# SPDX-License-Identifier: Apache-2.0
"""The static scorer: scores from a table, without a source."""
