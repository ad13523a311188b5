"""A wrapper that counts calls."""

from collections import Counter

from dsf.kube.port import Kube
from tests.kube_wrappers.wrapper import WRITES, Call, Verb, Wrapper


class Counting(Wrapper):
    """Counts calls by verb and qualified resource, failed calls included."""

    def __init__(self, inner: Kube) -> None:
        super().__init__(inner)
        self.calls: Counter[tuple[Verb, str]] = Counter()

    @property
    def writes(self) -> int:
        """The number of calls that were writes."""
        return sum(count for (verb, _), count in self.calls.items() if verb in WRITES)

    def before(self, call: Call) -> None:
        """Count the call."""
        self.calls[call.verb, call.kind.resource] += 1
