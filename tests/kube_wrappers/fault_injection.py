"""A wrapper that makes chosen calls fail."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from dsf.kube.errors import Forbidden, KubeError
from dsf.kube.port import Kube
from tests.kube_wrappers.wrapper import Call, Wrapper


@dataclass(frozen=True, slots=True)
class Fault:
    """An error in place of an answer: the call never arrives or, with `after`, its answer is lost.

    A watch that fails `after` ends at its first event.
    """

    error: KubeError
    when: Literal["before", "after"] = "before"


Faults = Callable[[Call], Fault | None]


class Faulty(Wrapper):
    """Makes calls fail according to a function from the call to its fault, if any."""

    def __init__(self, inner: Kube, faults: Faults) -> None:
        super().__init__(inner)
        self._faults = faults

    def before(self, call: Call) -> None:
        """Raise the fault of a call that is to fail before it arrives."""
        self._raise("before", call)

    def after(self, call: Call) -> None:
        """Raise the fault of a call whose answer is to be lost."""
        self._raise("after", call)

    def _raise(self, when: Literal["before", "after"], call: Call) -> None:
        fault = self._faults(call)
        if fault is not None and fault.when == when:
            raise fault.error


def unwatchable(kube: Kube) -> Kube:
    """Return a client that may watch nothing: what it is for has to read the hub."""
    refused = Fault(Forbidden("no watch is allowed"))
    return Faulty(kube, lambda call: refused if call.verb == "watch" else None)


def at(faults: Mapping[int, Fault]) -> Faults:
    """Return the faults of calls by their number, counted from 1."""
    return lambda call: faults.get(call.number)
