# SPDX-License-Identifier: Apache-2.0
"""A template for scores that a language model makes: one prompt, and a reply that is not trusted.

`shared_model` is another program with the same config: what the product ships, for a model that
many clusters share. A copy of this folder works without it.
"""
