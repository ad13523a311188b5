# SPDX-License-Identifier: Apache-2.0
"""Example scorers to copy, and `scoring_service`, the HTTP around all of them.

A copy has two folders: a scorer, and `scoring_service`. They import nothing else of this
repository, and each other by relative imports, so the folder around them has any name.
"""
