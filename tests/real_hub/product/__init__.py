"""The product on a real hub: installed by its charts, run like its Pods, used like in its guide."""
