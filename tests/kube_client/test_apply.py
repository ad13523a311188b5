"""Changes worked out and applied on the embedded hub leave nothing to change."""

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from dsf.kube.changes import apply, diff
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.kinds import CONFIG_MAP, NAMESPACE
from dsf.kube.port import Object
from dsf.kube.wrappers import Counting

short = st.dictionaries(st.sampled_from("abc"), st.sampled_from(["", "1", "2"]), max_size=3)
metadata = st.fixed_dictionaries({}, optional={"labels": short, "annotations": short})
fields = st.fixed_dictionaries({}, optional={"data": short})
collections = st.dictionaries(st.sampled_from("xyz"), st.tuples(metadata, fields), max_size=3)
Collection = dict[str, tuple[dict[str, object], dict[str, object]]]


def config_maps(collection: Collection) -> list[Object]:
    return [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": "ns", **metadata},
            **fields,
        }
        for name, (metadata, fields) in collection.items()
    ]


@settings(max_examples=40)
@given(before=collections, after=collections)
def test_any_collection_leads_to_any_other_and_stays_there(
    before: Collection, after: Collection
) -> None:
    async def main() -> None:
        hub = EmbeddedHub()
        await hub.create(
            NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns"}}
        )
        for desired in (config_maps(before), config_maps(after)):
            kube = Counting(hub)
            changes = diff(CONFIG_MAP, desired, (await hub.list(CONFIG_MAP, "ns")).items)
            outcomes = await apply(kube, changes)
            assert [outcome.error for outcome in outcomes] == [None] * len(changes)
            assert kube.writes == len(changes)
            observed = (await hub.list(CONFIG_MAP, "ns")).items
            assert diff(CONFIG_MAP, desired, observed) == []
            assert {obj["metadata"]["name"] for obj in observed} == {
                obj["metadata"]["name"] for obj in desired
            }

    asyncio.run(main())
