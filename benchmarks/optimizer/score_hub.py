"""A hub that generates its objects when they are listed: thousands of clusters, all pairs scored.

It answers lists only, with limits, continue tokens and field selectors, as an API server does. It
needs no memory for the objects.
"""

import json
import socket
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from aiohttp import web

from benchmarks.optimizer.instances import DEVICES, PER_GPU, Instance, Kind, instance
from dsf.kube import kinds
from optimizer.snapshot.ownership.others_part import USAGE_SCORE

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

NAMESPACE = "default"
SCORE = "performance"
COST = "power"
"""Has the same values, for a limit to count."""

Make = Callable[[int], dict[str, Any]]
"""Makes one object of a list by its number."""


def hub(given: Instance, missing: float) -> web.Application:
    """Return an API server for an instance; `missing`: the share of pairs without a score."""
    app = web.Application()
    for kind, (count, make) in lists(given, missing).items():
        for path in {kind.path(), kind.path(NAMESPACE)}:
            app.router.add_get(path, _listing(count, make))
    return app


def lists(given: Instance, missing: float) -> dict[kinds.Kind, tuple[int, Make]]:
    """Return how many objects of each kind an instance has, and what makes them."""
    return {
        kinds.MANAGED_CLUSTER: (len(given.gpus), _cluster),
        kinds.POLICY: (len(given.gpus) * len(DEVICES), lambda index: _policy(given, index)),
        kinds.MANIFEST_WORK_REPLICA_SET: (len(given.sizes), lambda index: _workload(given, index)),
        kinds.ADD_ON_PLACEMENT_SCORE: (len(given.gpus), _scores(given, missing)),
        kinds.PLACEMENT: (0, _cluster),
        kinds.PLACEMENT_BINDING: (0, _cluster),
    }


def serve(
    ports: "Connection[int, None]", clusters: int, workloads: int, kind: Kind, missing: float
) -> None:
    """Serve a hub until this process is stopped; send the port."""
    app = hub(instance(clusters, workloads, kind), missing)
    listener = socket.create_server(("127.0.0.1", 0))
    ports.send(listener.getsockname()[1])
    web.run_app(app, sock=listener, print=None)


def request(clusters: int, workloads: int, limit: float | None) -> dict[str, Any]:
    """Return the body of POST /optimize that asks for everything; `limit`: most of COST in all."""
    cost = {"name": "cost", "maximum": limit, "score": {"addonPlacementScore": COST}}
    return {
        "namespace": NAMESPACE,
        "clusters": [
            {
                "name": f"c{cluster}",
                "availablePolicies": [{"name": f"p{cluster}-{device}"} for device in DEVICES],
            }
            for cluster in range(clusters)
        ],
        "targetWorkloads": [{"name": f"w{index}"} for index in range(workloads)],
        "preference": {"addonPlacementScore": SCORE},
        "limits": [] if limit is None else [cost],
    }


def page(workloads: int, clusters: int) -> bytes:
    """Return the scores of some clusters as a list in JSON."""
    make = _scores(instance(clusters, workloads, "prof"), 0.0)
    return json.dumps({"items": [make(index) for index in range(clusters)]}).encode()


def _listing(count: int, make: Make) -> Callable[[web.Request], Any]:
    async def answer(asked: web.Request) -> web.Response:
        first = int(asked.query.get("continue", "0"))
        last = min(count, first + int(asked.query.get("limit", "0") or count))
        metadata = {"resourceVersion": "1", **({"continue": str(last)} if last < count else {})}
        name = asked.query.get("fieldSelector", "").removeprefix("metadata.name=")
        items = [make(index) for index in range(first, last if name != USAGE_SCORE else first)]
        for item in items if name else ():
            item["metadata"]["name"] = name  # every score has the same values
        body = {"metadata": metadata, "items": items}
        return web.Response(body=json.dumps(body).encode(), content_type="application/json")

    return answer


def _object(name: str, labels: dict[str, str], **fields: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": labels, "resourceVersion": "1"}, **fields}


def _in_namespace(obj: dict[str, Any]) -> dict[str, Any]:
    obj["metadata"]["namespace"] = NAMESPACE
    return obj


def _cluster(index: int) -> dict[str, Any]:
    return _object(f"c{index}", {"cluster-name": f"c{index}"}, spec={"hubAcceptsClient": True})


def _policy(given: Instance, index: int) -> dict[str, Any]:
    cluster, device = divmod(index, len(DEVICES))
    labels = {
        "resource-supply-kind": "gpu",
        "resource-supply-device": DEVICES[device],
        "resource-supply-amount": str(int(given.gpus[cluster]) * PER_GPU[device]),
    }
    spec: dict[str, Any] = {"disabled": False, "policy-templates": []}
    return _in_namespace(_object(f"p{cluster}-{DEVICES[device]}", labels, spec=spec))


def _workload(given: Instance, index: int) -> dict[str, Any]:
    labels = {
        "app": f"w{index}",
        "resource-request-kind": "gpu",
        "resource-request-amount": str(int(given.sizes[index])),
    }
    spec = {"placementRefs": [{"name": f"w{index}-placement"}], "manifestWorkTemplate": {}}
    return _in_namespace(_object(f"w{index}", labels, spec=spec))


def _scores(given: Instance, missing: float) -> Make:
    names = [f"w{index};{device}" for index in range(len(given.sizes)) for device in DEVICES]

    def make(cluster: int) -> dict[str, Any]:
        values: Sequence[float] = given.scores[:, cluster].ravel().tolist()
        kept = np.random.default_rng([7, cluster]).random(len(names)) >= missing
        entries = [
            {"name": name, "value": int(value)}
            for name, value, there in zip(names, values, kept.tolist(), strict=True)
            if there
        ]
        made = _object(SCORE, {}, status={"scores": entries})
        made["metadata"]["namespace"] = f"c{cluster}"
        return made

    return make
