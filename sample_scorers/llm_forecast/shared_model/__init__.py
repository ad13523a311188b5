# SPDX-License-Identifier: Apache-2.0
"""The LLM forecast scorer that the product ships: for a model that many clusters share and pay for.

Besides the template it has batches under a deadline and a token budget, a cache, pauses that the
model's server asks for, a fallback that says so, and a health check that costs no tokens.
"""
