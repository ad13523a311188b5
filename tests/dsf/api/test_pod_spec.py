"""What a Pod requests of its node, as kube-scheduler computes it."""

from typing import Any

import pytest

from dsf.api.pod_spec import PodSpec, read_part
from dsf.api.untrusted_text import InvalidInput


def requested(spec: dict[str, Any]) -> dict[str, float] | str:
    read = read_part(PodSpec, spec, "spec")
    return read.message if isinstance(read, InvalidInput) else read.requested()


def asking(always: bool = False, **requests: str | int) -> dict[str, Any]:
    rest = {"restartPolicy": "Always"} if always else {}
    return {"name": "c", "resources": {"requests": requests}, **rest}


GPU = "nvidia.com/gpu"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"containers": [{"name": "c"}]}, {}),
        (
            {"containers": [asking(cpu="500m"), asking(cpu=1, memory="1Gi")]},
            {"cpu": 1.5, "memory": 2.0**30},
        ),
        (
            {
                "containers": [
                    {"resources": {"limits": {GPU: 2, "cpu": "4"}, "requests": {"cpu": "1"}}}
                ]
            },
            {GPU: 2, "cpu": 1},
        ),
        # One of initContainers runs alone, before the others.
        (
            {"containers": [asking(cpu="1")], "initContainers": [asking(cpu="3"), asking(cpu="2")]},
            {"cpu": 3},
        ),
        # One that runs on counts beside the containers, and beside those that follow it.
        (
            {
                "containers": [asking(cpu="1", memory="1")],
                "initContainers": [
                    asking(cpu="2"),
                    asking(always=True, cpu="1"),
                    asking(cpu="4", memory="2"),
                ],
            },
            {"cpu": 5, "memory": 2},
        ),
        (
            {
                "containers": [asking(cpu="1")],
                "initContainers": [asking(always=True, cpu="1"), asking(always=True, cpu="2")],
            },
            {"cpu": 4},
        ),
        # What the Pod states for all its containers counts instead of their sum.
        (
            {
                "containers": [
                    {"resources": {"requests": {"cpu": "1", "memory": "1"}, "limits": {GPU: 1}}}
                ],
                "resources": {
                    "requests": {"cpu": "3", GPU: "7"},
                    "limits": {"cpu": "4", "memory": "9", "hugepages-2Mi": "8"},
                },
            },
            {"cpu": 3, "memory": 1, GPU: 1, "hugepages-2Mi": 8},
        ),
        (
            {"containers": [asking(cpu="1")], "overhead": {"cpu": "250m", "memory": "5"}},
            {"cpu": 1.25, "memory": 5},
        ),
    ],
)
def test_requests_are_those_that_the_scheduler_counts(
    spec: dict[str, Any], expected: dict[str, float]
) -> None:
    assert requested(spec) == {**expected, "pods": 1}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("Pod", "spec: Input should be a valid dictionary or instance of PodSpec"),
        ({}, "spec.containers: Field required"),
        ({"containers": []}, "spec.containers: Tuple should have at least 1 item"),
        (
            {"containers": [asking(cpu="1"), asking(cpu="-1")]},
            'spec.containers[1].resources.requests: "-1" is no quantity of 0 or more',
        ),
        ({"containers": [asking(cpu="1e30")]}, '"1e30" is more than any node has'),
        ({"containers": [asking(cpu="NaN")]}, '"NaN" is no quantity'),
        ({"containers": [asking(cpu=True)]}, '"True" is no quantity'),
        ({"containers": [{"resources": []}]}, "spec.containers[0].resources: "),
        (
            {"containers": [{"resources": {"requests": "all"}}]},
            "spec.containers[0].resources.requests: ",
        ),
    ],
)
def test_what_can_not_be_read_is_named_with_its_place(spec: Any, message: str) -> None:
    assert message in str(requested(spec))
