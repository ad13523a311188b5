"""Prints the CRD of PlacementOptimization, which `dsf` carries as a file: see `make crds`."""

import sys

import yaml

from optimizer.wire.placement_optimization import placement_optimization

if __name__ == "__main__":
    sys.stdout.write(yaml.safe_dump(placement_optimization(), sort_keys=False))
