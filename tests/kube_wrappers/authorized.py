"""A wrapper that refuses what a user of an AccessTable may not do, in the API server's words."""

from dsf.kube.access_reviews import right
from dsf.kube.errors import Forbidden
from dsf.kube.port import Kube
from tests.kube_wrappers.reviewing_hub import AccessTable
from tests.kube_wrappers.wrapper import Call, Wrapper


class Authorized(Wrapper):
    """Passes on what the user has a right for."""

    def __init__(self, inner: Kube, user: str, access: AccessTable) -> None:
        super().__init__(inner)
        self._user = user
        self._access = access

    def before(self, call: Call) -> None:
        """Raise Forbidden where the user lacks the right."""
        asked = right(call.verb, call.kind, call.namespace or "")
        if self._access.allows(self._user, asked):
            return
        name = f' "{call.name}"' if call.name else ""
        where = f'in the namespace "{call.namespace}"' if call.namespace else "at the cluster scope"
        raise Forbidden(
            f'{call.kind.resource}{name} is forbidden: User "{self._user}" cannot {call.verb}'
            f' resource "{call.kind.plural}" in API group "{call.kind.group}" {where}'
        )
