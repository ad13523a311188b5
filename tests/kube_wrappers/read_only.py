"""A wrapper that refuses every write."""

from dsf.kube.errors import Forbidden
from tests.kube_wrappers.wrapper import WRITES, Call, Wrapper


class ReadOnly(Wrapper):
    """Refuses every write with Forbidden, and passes reads on."""

    def before(self, call: Call) -> None:
        """Raise Forbidden for a write."""
        if call.verb in WRITES:
            raise Forbidden(
                f'{call.kind.resource} "{call.name}" is forbidden: '
                f"cannot {call.verb} through a read-only connection"
            )
