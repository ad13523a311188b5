"""Real processes that real signals stop."""

import asyncio
import signal
import subprocess
import sys

import pytest

from dsf.kube.errors import Unreachable
from dsf.runtime.process import run

PROGRAM = """
import asyncio
from dsf.runtime.process import run

async def main():
    try:
        print("started", flush=True)
        await asyncio.sleep(3600)
    finally:
        print("cleaned up", flush=True)

run(main())
print("ended", flush=True)
"""


COLLECTED = """
import asyncio, gc
from dsf.runtime import process

async def main():
    while not gc.isenabled():
        await asyncio.sleep(0)

gc.disable()
process.START_SECONDS = 0.0
process.run(main())
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_the_process_clean_up_and_end_well(number: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == "started\n"
        process.send_signal(number)
        assert process.stdout.read() == "cleaned up\nended\n"
    assert process.returncode == 0


def test_the_garbage_collector_works_after_the_start() -> None:
    subprocess.run([sys.executable, "-c", COLLECTED], check=True, timeout=60)


def test_a_process_may_end_by_itself() -> None:
    ended: list[bool] = []

    async def main() -> None:
        ended.append(True)

    run(main())
    assert ended == [True]


@pytest.mark.parametrize(
    ("errors", "raised"),
    [
        ([Unreachable("away")], Unreachable),
        ([Unreachable("away"), Unreachable("away, too")], Unreachable),
        ([Unreachable("away"), KeyError("a bug")], ExceptionGroup),
    ],
)
def test_errors_of_one_kind_are_taken_out_of_the_groups_around_them(
    errors: list[Exception], raised: type[Exception]
) -> None:
    async def fail(error: Exception) -> None:
        raise error

    async def main() -> None:
        async with asyncio.TaskGroup() as outer, asyncio.TaskGroup() as inner:
            outer.create_task(asyncio.sleep(3600))
            for error in errors:
                inner.create_task(fail(error))

    with pytest.raises(raised) as caught:
        run(main())
    assert raised is ExceptionGroup or caught.value is errors[0]


def test_a_cancellation_that_no_signal_asked_for_is_an_error() -> None:
    async def main() -> None:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        run(main())
