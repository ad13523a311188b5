"""The memory of an agent's process stays bounded with hostile sources and scoring APIs."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.dsf.agent.builders import summary
from tests.dsf.agent.servers import matrix, replying, scores, serving
from tests.dsf.agent.test_cli import file_of

MIB = 1 << 20
CHART_LIMIT = 192 * MIB
"""`spokeSetting.agent.resources.limits.memory`."""
CHART_ENVIRONMENT = {"MALLOC_MMAP_THRESHOLD_": "1048576"}
"""What the chart sets for the agent. glibc otherwise raises the size of blocks that are given back
when they are freed with each block that is freed. Source: mallopt(3), M_MMAP_THRESHOLD."""
MEASURE = (
    "import resource, subprocess, sys;"
    "subprocess.run(sys.argv[1:], check=False);"
    "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024, file=sys.stderr)"
)
GOOD = matrix(({"node": "n1", "namespace": "ns", "pod": "a"}, [[1, "1.5"]]))
QUERY = b'{"status":"success","data":{"resultType":"matrix","result":%b}}'


def repeated(element: bytes, size: int) -> bytes:
    return b",".join([element] * (size // (len(element) + 1)))


def numbered(element: bytes, count: int) -> bytes:
    return b",".join(element.replace(b"#", b"%06d" % n) for n in range(count))


def sources(*, largest: bool) -> Iterator[bytes]:
    """No series; and samples, labels, lists, and as many series as are taken."""
    yield QUERY % b"[%b]" % repeated(b"1", 30 * MIB)
    if not largest:
        return
    yield QUERY % b'[{"metric":{},"values":[%b]}]' % repeated(b'[1,"1"]', 30 * MIB)
    yield QUERY % b'[{"metric":{%b},"values":[]}]' % numbered(b'"#":"x"', 2_000_000)
    yield QUERY % b"[]" + b"[" + repeated(b"[]", 30 * MIB) + b"]"
    series = b'{"metric":{"pod":"#","a":"%b"},"value":[1,"2"]}' % (b"x" * 100)
    yield QUERY % b"[%b]" % numbered(series, 200_000)


def results(*, largest: bool) -> Iterator[bytes]:
    """No results; and lists, and as many results as are taken."""
    yield b'{"results":[%b]}' % repeated(b"1", 9 * MIB)
    if not largest:
        return
    yield b'{"results":[%b]}' % repeated(b"[]", 9 * MIB)
    result = b'{"metric":{"app":"a","pod":"#","meta":"%b"},"score":1}' % (b"x" * 120)
    yield b'{"results":[%b]}' % numbered(result, 50_000)


EIGHT_SERVERS = pytest.mark.fire(
    "what a hostile answer costs follows the limits",
    "an agent process against eight hostile servers, below the chart's limit",
)


@pytest.fixture
async def servers() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as stack:
        yield stack


@pytest.mark.parametrize(
    ("largest", "failing"),
    [
        pytest.param(False, (1, 2), marks=pytest.mark.exhaustive),
        pytest.param(True, (1, 3, 4, 6, 7), marks=[EIGHT_SERVERS, pytest.mark.exhaustive]),
    ],
)
async def test_hostile_and_largest_answers_at_once_fit_into_the_charts_limit(
    servers: AsyncExitStack, tmp_path: Path, failing: Sequence[int], *, largest: bool
) -> None:
    good = await servers.enter_async_context(serving(replying(GOOD)))
    scorer = await servers.enter_async_context(serving(replying(scores(({"app": "a"}, 7)))))
    asked = [(f"{good.url}/api/v1/query_range", scorer.url)]
    for body in sources(largest=largest):
        source = await servers.enter_async_context(serving(replying(body)))
        asked.append((f"{source.url}/api/v1/query_range", scorer.url))
    for body in results(largest=largest):
        hostile = await servers.enter_async_context(serving(replying(body)))
        asked.append((f"{good.url}/api/v1/query_range", hostile.url))
    summaries = file_of(
        tmp_path,
        *(
            summary(
                f"scorer{index}",
                source_endpoint=source,
                scoring_endpoint=scoring,
                scoring_interval=120,
                score_dimension_format="${app}",
            )
            for index, (source, scoring) in enumerate(asked)
        ),
    )
    agent = [sys.executable, "-m", "dsf", "agent", "--cluster-name=cluster1", "--once", summaries]
    started = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", MEASURE, *agent),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), **CHART_ENVIRONMENT},
    )
    out, err = await started.communicate()
    *said, peak = err.decode().splitlines()
    refused = [line.split(": ")[1] for line in said]
    assert sorted(refused) == [f"scorer{number}" for number in failing]
    assert out.decode().count("value: 7") == (3 if largest else 1)
    assert int(peak) < CHART_LIMIT
