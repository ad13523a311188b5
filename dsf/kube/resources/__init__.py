"""The resources that CustomResourceDefinitions define, and what a write makes of an object of each.
Pure; `ocm` reads definitions that are shipped with the product.
May import `schema`.
"""
