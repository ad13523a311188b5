"""The baseline of `benchmarks.hub.controller`: concurrent patches by the official client.

It prints patches per second, without the time to connect.
"""

import asyncio
import base64
import json
import sys
import time

from kubernetes.aio import client, config

GROUP = "work.open-cluster-management.io"


async def main(kubeconfig: str, name: str, clusters: int, at_once: int, body: str) -> float:
    """Patch the ManifestWork `name` in every cluster's namespace, `at_once` at a time."""
    await config.load_kube_config(kubeconfig)
    patch = json.loads(base64.b64decode(body))
    async with client.ApiClient() as api:
        works = client.CustomObjectsApi(api)
        namespaces = iter([f"cluster-{number:04}" for number in range(clusters)])

        async def update(namespace: str) -> None:
            await works.patch_namespaced_custom_object(
                GROUP,
                "v1",
                namespace,
                "manifestworks",
                name,
                patch,
                _content_type="application/merge-patch+json",
            )

        async def loop() -> None:
            for namespace in namespaces:
                await update(namespace)

        await works.list_namespaced_custom_object(GROUP, "v1", "cluster-0000", "manifestworks")
        started = time.perf_counter()
        await asyncio.gather(*(loop() for _ in range(at_once)))
        return clusters / (time.perf_counter() - started)


if __name__ == "__main__":
    _, file, work, count, places, patch_text = sys.argv
    print(asyncio.run(main(file, work, int(count), int(places), patch_text)))
