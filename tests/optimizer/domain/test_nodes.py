"""Resources of nodes, and the kinds and devices that they are."""

import pytest

from optimizer.domain.nodes import kind_and_device, resource_of


@pytest.mark.parametrize(
    ("resource", "kind", "device"),
    [
        ("cpu", "cpu", ""),
        ("memory", "memory", ""),
        ("nvidia.com/gpu", "gpu", "all"),
        ("nvidia.com/mig-3g.40gb", "gpu", "3g.40gb"),
        ("nvidia.com/mig-1g.10gb.me", "gpu", "1g.10gb.me"),
        ("nvidia.com/gpu.shared", "nvidia.com/gpu.shared", ""),
        ("rdma/hca_shared_devices_a", "rdma/hca_shared_devices_a", ""),
    ],
)
def test_a_resource_is_one_device_of_a_kind_and_the_other_way_round(
    resource: str, kind: str, device: str
) -> None:
    assert kind_and_device(resource) == (kind, device)
    assert resource_of(kind, device) == resource
