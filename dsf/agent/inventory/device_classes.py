"""DeviceClasses of the managed cluster, which the hub needs to tell what a claim asks for."""

from collections.abc import Iterable

from dsf.api.crd.node_inventory import MAX_DEVICE_CLASSES, InventoriedDeviceClass
from dsf.kube.port import Object

MAX_SELECTOR_LENGTH = 2_048
"""Characters of a selector that is listed; Kubernetes accepts 10,240."""


def list_device_classes(
    classes: Iterable[Object],
) -> tuple[tuple[InventoriedDeviceClass, ...], tuple[str, ...]]:
    """Return DeviceClasses with their selectors, and why some are not listed."""
    listed, problems = [], []
    for item in sorted(classes, key=lambda obj: str(obj["metadata"]["name"])):
        name, spec = item["metadata"]["name"], item.get("spec") or {}
        parts = spec.get("selectors") or ()
        texts = [text for part in parts if (text := (part.get("cel") or {}).get("expression"))]
        if len(texts) < len(parts):
            problems.append(f"DeviceClass {name} has a selector that is not CEL")
        elif any(len(text) > MAX_SELECTOR_LENGTH for text in texts):
            problems.append(
                f"DeviceClass {name} has a selector of more than {MAX_SELECTOR_LENGTH} characters"
            )
        else:
            resource = spec.get("extendedResourceName")
            listed.append(
                InventoriedDeviceClass(
                    name=name, selectors=texts or None, extended_resource_name=resource
                )
            )
    if len(listed) > MAX_DEVICE_CLASSES:
        problems.append(f"{len(listed)} DeviceClasses, of which {MAX_DEVICE_CLASSES} are listed")
    return tuple(listed[:MAX_DEVICE_CLASSES]), tuple(problems)
