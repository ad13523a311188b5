"""DeviceClasses of the managed cluster, which the hub needs to tell what a claim asks for."""

from collections.abc import Iterable

from dsf.api.crd.node_inventory import MAX_DEVICE_CLASSES, MAX_SELECTOR_LENGTH
from dsf.api.untrusted_text import UntrustedName
from dsf.kube.port import Object

MAX_CLASS_BYTES = 64 << 10
"""Characters of the selectors of all classes that are listed."""


def read_class(obj: Object) -> Object:
    """Return a DeviceClass as the inventory has it, or `problem`: why it is not listed."""
    name, spec = str(obj["metadata"]["name"]), obj.get("spec") or {}
    parts = spec.get("selectors") or ()
    texts = [text for part in parts if (text := (part.get("cel") or {}).get("expression"))]
    if len(texts) < len(parts):
        return {"name": name, "problem": "has a selector that is not CEL"}
    if any(len(text) > MAX_SELECTOR_LENGTH for text in texts):
        return {
            "name": name,
            "problem": f"has a selector of more than {MAX_SELECTOR_LENGTH} characters",
        }
    resource = spec.get("extendedResourceName")
    return {
        "name": name,
        **({"selectors": texts} if texts else {}),
        **({"extendedResourceName": resource} if resource else {}),
    }


def list_device_classes(classes: Iterable[Object]) -> tuple[list[Object], list[str]]:
    """Return the classes that are listed, by name, and why others are not."""
    listed, problems, left = list[Object](), list[str](), MAX_CLASS_BYTES
    for item in sorted(classes, key=lambda item: str(item["name"])):
        size = sum(map(len, item.get("selectors") or ()))
        if "problem" in item:
            problems.append(f"DeviceClass {UntrustedName(item['name'])} {item['problem']}")
        elif len(listed) == MAX_DEVICE_CLASSES or size > left:
            most = f"{MAX_DEVICE_CLASSES} classes and {MAX_CLASS_BYTES >> 10} KiB are listed"
            problems.append(f"DeviceClass {UntrustedName(item['name'])} is not listed: {most}")
        else:
            listed.append(item)
            left -= size
    return listed, problems
