"""Samples in the fields of Kubernetes objects."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from dsf.agent.wire.prometheus_answer import SERIES_BYTES
from dsf.agent.wire.series_buffer import Labels
from dsf.api.crd.kubernetes_objects import OWN_LABELS, KubernetesObjects
from dsf.api.scoring.json_path import JsonPath, ObjectPaths, number_at
from dsf.api.untrusted_text import UntrustedName, UntrustedText, counted

LONGEST_LABEL = 256
"""Characters of a label's value; a longer one is cut."""


@dataclass(slots=True)
class ObjectSamples:
    """The samples of the objects added so far, by labels, and what had none.

    `bytes` is the memory that they take as series.
    """

    objects: KubernetesObjects
    paths: ObjectPaths
    samples: dict[Labels, float] = field(default_factory=dict)
    read: int = 0
    bytes: int = 0
    _without: Counter[str] = field(default_factory=Counter)
    _not_numbers: dict[str, list[str]] = field(default_factory=dict)

    def add(self, items: Iterable[Mapping[str, Any]]) -> None:
        """Add objects."""
        for item in items:
            self.read += 1
            metadata = item.get("metadata") or {}
            labels = {key: str(metadata[key]) for key in OWN_LABELS if metadata.get(key)}
            for name, path in self.paths.labels.items():
                if (text := _label(path, item)) is not None:
                    labels[name] = text[:LONGEST_LABEL]
            for metric, path in self.paths.values.items():
                self._add(metric, labels, number_at(path, item))

    def _add(self, metric: str, labels: Mapping[str, str], number: float | None) -> None:
        if number is None:
            self._without[metric] += 1
        elif math.isnan(number):
            self._not_numbers.setdefault(metric, []).append(labels.get("name", ""))
        else:
            self.samples[tuple(sorted({**labels, "__name__": metric}.items()))] = number
            self.bytes += SERIES_BYTES + sum(map(len, labels)) + sum(map(len, labels.values()))

    def remarks(self) -> Iterator[str]:
        """Yield what was left out."""
        for metric, path in self.objects.values.items():
            where = f"{UntrustedName(metric)} at {UntrustedText(path)}"
            if number := self._without[metric]:
                yield f"left out {counted(number, 'object')} of {self.read} without {where}"
            if named := self._not_numbers.get(metric):
                first = UntrustedName(named[0])
                yield (
                    f"left out {counted(len(named), 'object')} of {self.read}, such as {first},"
                    f" with neither a number nor a quantity as {where}"
                )


def _label(path: JsonPath, item: Mapping[str, Any]) -> str | None:
    value = next(iter(path.find(item)), None)
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, str | int | float) else None
