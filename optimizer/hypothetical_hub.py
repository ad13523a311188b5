"""A hub as a what-if question pretends it. It can only be listed, so nothing can be written."""

from dsf.kube.kinds import Kind
from dsf.kube.port import Lister, ObjectList
from optimizer.overview.what_if import PretendedObjects


class HypotheticalHub:
    """Lists what another hub lists, with the pretended changes.

    Each page is changed by itself, so a page may have more objects than its limit.
    """

    def __init__(self, kube: Lister, pretended: PretendedObjects) -> None:
        self._kube = kube
        self._pretended = pretended

    async def list(
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        labels: str = "",
        fields: str = "",
        limit: int = 0,
        continue_token: str = "",
    ) -> ObjectList:
        """Return a page of the objects that the question pretends."""
        page = await self._kube.list(
            kind,
            namespace,
            labels=labels,
            fields=fields,
            limit=limit,
            continue_token=continue_token,
        )
        items = tuple(self._pretended.seen(kind, page.items))
        return ObjectList(items, page.resource_version, page.continue_token, page.remaining)
