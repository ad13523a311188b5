"""The product on a real hub: installed by its charts, run as its Pods, used as its guide says."""
