"""The search over blocks, from prices to a proof."""
