# SPDX-License-Identifier: Apache-2.0
"""The latency scorer: how long probes of each app take, seen from a managed cluster."""
