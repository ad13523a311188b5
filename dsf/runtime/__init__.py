"""What every long-running part shares: watch, queue, reconcile, endpoints, logs, signals."""
