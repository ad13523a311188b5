"""Metrics that the product exposes, and the rules, dashboards and pages that use them."""
