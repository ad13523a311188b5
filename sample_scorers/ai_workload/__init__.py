# SPDX-License-Identifier: Apache-2.0
"""The AI workload scorers: tokens per second and watts of each app on each kind of GPU device."""
