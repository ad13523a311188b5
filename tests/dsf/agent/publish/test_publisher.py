import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from dsf.agent.failure import Failure
from dsf.agent.publish.placement_score import RoundReport, placement_score
from dsf.agent.publish.publisher import Publisher, PublishResult
from dsf.agent.publish.write_permission import PublisherIdentity, WritePauses
from dsf.agent.score.result_rules import AddOnPlacementScoreItem, RoundScores
from dsf.api.crd.score_rules import DefaultScore, OnFailure
from dsf.kube.client.connect import connect
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.embedded.http.server import kubeconfig, serving
from dsf.kube.errors import Forbidden, Invalid, KubeError, TooManyRequests, Unreachable
from dsf.kube.kinds import ADD_ON_PLACEMENT_SCORE
from dsf.kube.port import Kube
from dsf.runtime.backoff import Backoff
from tests.dsf.agent.builders import summary
from tests.dsf.agent.conftest import CLUSTER
from tests.kube_wrappers.counting import Counting
from tests.kube_wrappers.fault_injection import Fault, Faulty, at

SCORER = summary(score_name="my_score")
OWN = placement_score(CLUSTER, "my_score")["metadata"]["labels"]
BROKEN = RoundReport.failed(Failure("scoring", "ServerError", "answered 500"))


def good(*values: int) -> RoundReport:
    return RoundReport.success(
        RoundScores(tuple(AddOnPlacementScoreItem(f"app{n}", v) for n, v in enumerate(values)))
    )


@dataclass
class Clock:
    time: datetime = field(default=datetime(2026, 1, 1, 12, tzinfo=UTC))

    def __call__(self) -> datetime:
        return self.time

    def pass_(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


@pytest.fixture
def clock() -> Clock:
    return Clock()


async def publish(
    publisher: Publisher, told: RoundReport, scorer: Any = SCORER, seconds: float = 20
) -> Failure | None:
    return (await publisher.publish(scorer, told, seconds=seconds)).failure


async def status(hub: Kube, name: str = "my-score") -> dict[str, Any]:
    obj = await hub.get(ADD_ON_PLACEMENT_SCORE, name, CLUSTER)
    return dict(obj.get("status") or {})


async def objects(hub: Kube) -> set[str]:
    page = await hub.list(ADD_ON_PLACEMENT_SCORE, CLUSTER)
    return {obj["metadata"]["name"] for obj in page.items}


def values(found: dict[str, Any]) -> list[int]:
    return [item["value"] for item in found["scores"]]


async def test_an_unchanged_hour_costs_renewals_only(hub: EmbeddedHub, clock: Clock) -> None:
    counting = Counting(hub)
    publisher = Publisher(counting, CLUSTER, clock)
    await publish(publisher, good(1))
    writes, reads = counting.writes, sum(counting.calls.values()) - counting.writes
    for _ in range(120):
        clock.pass_(30)
        assert await publish(publisher, good(1)) is None

    assert counting.writes - writes == 60
    assert sum(counting.calls.values()) - counting.writes == reads


async def test_a_lasting_failure_is_written_once_and_keeps_the_last_scores(
    hub: EmbeddedHub, clock: Clock
) -> None:
    counting = Counting(hub)
    publisher = Publisher(counting, CLUSTER, clock)
    await publish(publisher, good(7))
    before, writes = await status(hub), counting.writes
    for _ in range(100):
        clock.pass_(300)
        await publish(publisher, BROKEN)

    found = await status(hub)
    assert counting.writes == writes + 1
    assert (found["scores"], found["validUntil"]) == (before["scores"], before["validUntil"])
    assert {c["type"]: c["reason"] for c in found["conditions"]}["Scored"] == "ServerError"


async def test_a_default_score_counts_from_the_first_failure_until_there_are_results(
    hub: EmbeddedHub, clock: Clock
) -> None:
    scorer = SCORER.model_copy(
        update={"scoring_default_score": DefaultScore(value=-100, entries=["a", "b"])}
    )
    publisher = Publisher(hub, CLUSTER, clock)

    async def published(told: RoundReport) -> tuple[list[int], str, str]:
        await publish(publisher, told, scorer)
        found = await status(hub)
        assert clock().isoformat()[:19] < found["validUntil"]
        reasons = {one["type"]: one["reason"] for one in found["conditions"]}
        return values(found), reasons["Scored"], reasons["Published"]

    for _ in range(20):
        assert await published(BROKEN) == ([-100, -100], "ServerError", "DefaultScore")
        clock.pass_(45)
    assert await published(good(7)) == ([7], "Scored", "Published")
    assert await published(BROKEN) == ([7], "ServerError", "Published")
    entries = tuple(AddOnPlacementScoreItem(name, -100) for name in "ab")
    nothing = RoundReport.nothing_to_score(RoundScores(entries), -100, called=False)
    assert await published(nothing) == ([-100, -100], "NothingToScore", "DefaultScore")
    clock.pass_(80)
    for _ in range(3):
        assert await published(BROKEN) == ([-100, -100], "ServerError", "DefaultScore")
        clock.pass_(45)


async def test_a_restarted_agent_goes_on_with_the_object_it_finds(
    hub: EmbeddedHub, clock: Clock
) -> None:
    await publish(Publisher(hub, CLUSTER, clock), good(1))
    counting = Counting(hub)
    assert await publish(Publisher(counting, CLUSTER, clock), good(1)) is None
    assert counting.writes == 0


async def test_what_others_changed_or_deleted_is_mended(hub: EmbeddedHub, clock: Clock) -> None:
    publisher = Publisher(hub, CLUSTER, clock)
    await publish(publisher, good(1))
    forged = {"status": {"scores": [{"name": "app0", "value": 100}]}}
    await hub.patch(ADD_ON_PLACEMENT_SCORE, "my-score", forged, CLUSTER, subresource="status")
    assert await publish(publisher, good(2)) is None
    assert values(await status(hub)) == [2]

    await hub.delete(ADD_ON_PLACEMENT_SCORE, "my-score", CLUSTER)
    assert await publish(publisher, good(3)) is None
    assert values(await status(hub)) == [3]


@pytest.mark.parametrize(
    "labels",
    [
        None,
        {"app.kubernetes.io/managed-by": "another-addon"},
        {**OWN, "app.kubernetes.io/managed-by": "another-addon"},
        placement_score(CLUSTER, "my-score")["metadata"]["labels"],
    ],
)
async def test_an_object_of_another_owner_is_left_alone(
    hub: EmbeddedHub, clock: Clock, labels: dict[str, str] | None
) -> None:
    obj = placement_score(CLUSTER, "my_score")
    obj["metadata"]["labels"] = labels or {}
    before = await hub.create(ADD_ON_PLACEMENT_SCORE, obj)

    failure = await publish(Publisher(hub, CLUSTER, clock), good(1))
    assert failure is not None
    assert (failure.stage, failure.reason) == ("publish", "ForeignObject")
    assert f"{CLUSTER}/my-score" in failure.message
    assert await hub.get(ADD_ON_PLACEMENT_SCORE, "my-score", CLUSTER) == before


@pytest.mark.virtual_time
async def test_an_object_without_labels_can_be_handed_over(hub: EmbeddedHub, clock: Clock) -> None:
    """As older agents left them: nothing says whose they are."""
    publisher = Publisher(hub, CLUSTER, clock)
    obj = placement_score(CLUSTER, "my_score")
    del obj["metadata"]["labels"]
    await hub.create(ADD_ON_PLACEMENT_SCORE, obj)
    await publisher.sweep(set)
    failure = await publish(publisher, good(1))
    assert failure is not None
    assert failure.reason == "ForeignObject"
    _, _, command = failure.message.partition("kubectl label addonplacementscores -n cluster1 ")
    name, *pairs = command.partition("`")[0].split()
    labels = dict(pair.split("=") for pair in pairs)

    await hub.patch(ADD_ON_PLACEMENT_SCORE, name, {"metadata": {"labels": labels}}, CLUSTER)
    await asyncio.sleep(1)
    assert await publish(publisher, good(1)) is None
    assert values(await status(hub)) == [1]


async def test_a_failed_round_tells_when_the_scores_need_another_look(
    hub: EmbeddedHub, clock: Clock
) -> None:
    publisher = Publisher(hub, CLUSTER, clock)
    await publish(publisher, good(1))
    clock.pass_(30)
    assert (await publisher.publish(SCORER, BROKEN, seconds=20)).again == 60
    held = SCORER.model_copy(
        update={"scoring_on_failure": OnFailure(policy="Hold", hold_seconds=100)}
    )
    assert (await publisher.publish(held, BROKEN, seconds=20)).again == 55


async def test_a_score_whose_name_no_object_can_have(hub: EmbeddedHub, clock: Clock) -> None:
    nameless = SCORER.model_copy(update={"score_name": "___"})
    failure = await publish(Publisher(hub, CLUSTER, clock), good(1), nameless)
    assert failure is not None
    assert failure.reason == "InvalidScoreName"


@pytest.mark.parametrize("error", [Unreachable("connection refused"), Forbidden("no right")])
async def test_a_hub_that_refuses_is_a_failure(
    hub: EmbeddedHub, clock: Clock, error: KubeError
) -> None:
    faulty = Faulty(hub, lambda _: Fault(error))
    failure = await publish(Publisher(faulty, CLUSTER, clock), good(1))
    assert failure is not None
    assert failure.reason == type(error).__name__
    assert str(error) in failure.message


@pytest.mark.virtual_time
async def test_a_hub_that_asks_for_a_pause_gets_it_from_all_scorers(
    hub: EmbeddedHub, clock: Clock
) -> None:
    busy = TooManyRequests("slow down", details={"retryAfterSeconds": 60})
    asked = list[float]()

    def schedule(_: object) -> Fault | None:
        asked.append(asyncio.get_running_loop().time())
        return Fault(busy) if len(asked) == 1 else None

    publisher = Publisher(Faulty(hub, schedule), CLUSTER, clock)
    for scorer in (SCORER, summary(score_name="other"), SCORER):
        failure = await publish(publisher, good(1), scorer)
        assert failure is not None
        assert failure.reason == "TooManyRequests"
        await asyncio.sleep(25)
    assert len(asked) == 1
    assert await publish(publisher, good(1)) is None
    assert asked[1] - asked[0] == 75


@pytest.mark.virtual_time
async def test_a_hub_that_never_answers_is_given_up(clock: Clock) -> None:
    class Hanging(EmbeddedHub):
        async def get(self, *_: Any, **__: Any) -> Any:
            await asyncio.sleep(1e6)

    failure = await publish(Publisher(Hanging(), CLUSTER, clock), good(1), seconds=20)
    assert failure is not None
    assert failure.reason == "DeadlineExceeded"
    assert asyncio.get_running_loop().time() == 20


async def attempts(
    error: KubeError, hub: EmbeddedHub, clock: Clock, *, every: float, hours: int
) -> list[float]:
    """Publish in turn and whenever asked to; tell when the hub was called in vain."""
    asked = list[float]()
    time = asyncio.get_running_loop().time

    def schedule(_: object) -> Fault | None:
        asked.append(time())
        return Fault(error)

    publisher = Publisher(Faulty(hub, schedule), CLUSTER, clock, WritePauses(lambda: 0.5))
    while time() < hours * 3600:
        again = (await publisher.publish(SCORER, good(1), seconds=20)).again
        assert again is not None
        await asyncio.sleep(min(again, every))
    return asked


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("error", "longest"), [(Unreachable("refused"), 5), (Invalid("no such field"), 300)]
)
async def test_a_hub_that_refuses_is_asked_ever_less(
    hub: EmbeddedHub, clock: Clock, error: KubeError, longest: float
) -> None:
    asked = await attempts(error, hub, clock, every=1, hours=1)
    waits = [after - before for before, after in pairwise(asked)]
    assert waits[:4] == [0.75, 1.5, 3, min(8, longest) * 0.75]
    assert set(waits[10:]) == {longest * 0.75}


@pytest.mark.virtual_time
async def test_pauses_of_one_score_hold_up_no_other_and_end_with_a_success(
    hub: EmbeddedHub, clock: Clock
) -> None:
    refusing = True
    publisher = Publisher(
        Faulty(
            hub,
            lambda call: (
                Fault(Unreachable("reset")) if refusing and call.name == "my-score" else None
            ),
        ),
        CLUSTER,
        clock,
        WritePauses(lambda: 0.0),
    )
    other = summary(score_name="other")
    assert (await publisher.publish(SCORER, good(1), seconds=20)).again == 1
    # The hub may be away: the other score finds out, a second later.
    assert (await publisher.publish(other, good(1), seconds=20)).again == 1
    await asyncio.sleep(1)
    assert await publish(publisher, good(1), other) is None
    for wait in (1, 2, 4):
        assert (await publisher.publish(SCORER, good(1), seconds=20)).again == wait
        assert await publish(publisher, good(1), other) is None
        await asyncio.sleep(wait)
    refusing = False
    assert await publish(publisher, good(1)) is None
    refusing = True
    assert (await publisher.publish(SCORER, good(2), seconds=20)).again == 1


@pytest.mark.virtual_time
async def test_scores_that_arrive_late_are_valid_from_their_round_on(
    hub: EmbeddedHub, clock: Clock
) -> None:
    publisher = Publisher(hub, CLUSTER, clock)
    ended = clock()
    clock.pass_(40)
    await publisher.publish(SCORER, good(1), seconds=20, ended=ended)
    assert (await status(hub))["validUntil"] == "2026-01-01T12:01:30Z"
    clock.pass_(50)
    late = await publisher.publish(SCORER, good(9), seconds=20, ended=ended)
    assert late == PublishResult()
    assert values(await status(hub)) == [1]


@pytest.mark.virtual_time
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("number", range(1, 6))
@pytest.mark.fire("any lost call to the hub is made up for", "calls of the agent that fail")
async def test_any_lost_call_is_made_up_for(
    hub: EmbeddedHub, clock: Clock, number: int, when: Any
) -> None:
    faulty = Faulty(hub, at({number: Fault(Unreachable("lost"), when)}))
    publisher = Publisher(faulty, CLUSTER, clock)
    for value in (1, 2, 2, 2, 2, 2):
        await publish(publisher, good(value))
        clock.pass_(30)
        await asyncio.sleep(30)
    assert await publish(publisher, good(2)) is None
    assert values(await status(hub)) == [2]
    assert await objects(hub) == {"my-score"}


async def test_the_sweep_deletes_only_own_objects_of_scores_that_are_gone(
    hub: EmbeddedHub, clock: Clock
) -> None:
    publisher = Publisher(hub, CLUSTER, clock)
    for name in ("old", "my_score"):
        await publish(publisher, good(1), summary(score_name=name))
    foreign = placement_score(CLUSTER, "foreign")
    foreign["metadata"]["labels"] = {}
    await hub.create(ADD_ON_PLACEMENT_SCORE, foreign)

    await publisher.sweep(lambda: {"my_score"})
    assert await objects(hub) == {"foreign", "my-score"}


@pytest.mark.virtual_time
async def test_the_sweep_makes_way_for_a_score_of_the_same_object(
    hub: EmbeddedHub, clock: Clock
) -> None:
    publisher = Publisher(hub, CLUSTER, clock)
    await publish(publisher, good(1), summary(score_name="my-score"))
    assert (await publish(publisher, good(2))) is not None
    await publisher.sweep(lambda: {"my_score"})
    await asyncio.sleep(1)
    assert await publish(publisher, good(2)) is None
    assert values(await status(hub)) == [2]


async def test_every_page_of_old_objects_is_swept(hub: EmbeddedHub, clock: Clock) -> None:
    def names(count: int) -> Iterable[str]:
        return (f"score-{n}" for n in range(count))

    for name in names(600):
        await hub.create(ADD_ON_PLACEMENT_SCORE, placement_score(CLUSTER, name))
    await Publisher(hub, CLUSTER, clock).sweep(set)
    assert await objects(hub) == set()


def of(hub: Kube, clock: Clock, identity: str) -> Publisher:
    return Publisher(hub, CLUSTER, clock, identity=PublisherIdentity(identity))


async def test_two_installations_of_one_cluster_name_leave_each_others_scores(
    hub: EmbeddedHub, clock: Clock
) -> None:
    """With other scorers each: neither deletes nor overwrites what the other keeps valid."""
    first, second = of(hub, clock, "first-uid"), of(hub, clock, "second-uid")
    await publish(first, good(1))
    await publish(first, good(1), summary(score_name="only_first"))

    await second.sweep(lambda: {"only_second"})
    assert await objects(hub) == {"my-score", "only-first"}
    failure = await publish(second, good(9))
    assert failure is not None
    assert failure.reason == "AnotherAgent"
    for told in ("first-uid", "second-uid", "--cluster-name", f"{CLUSTER}/my-score"):
        assert told in failure.message
    assert second.unready_reason() == failure.message
    assert first.unready_reason() is None
    assert await publish(second, good(9), summary(score_name="only_second")) is None
    await first.sweep(lambda: {"my_score", "only_first"})
    assert values(await status(hub)) == [1]
    assert await objects(hub) == {"my-score", "only-first", "only-second"}


@pytest.mark.virtual_time
async def test_what_an_agent_that_is_gone_left_is_taken_over_or_deleted(
    hub: EmbeddedHub, clock: Clock
) -> None:
    gone, second = of(hub, clock, "gone-uid"), of(hub, clock, "second-uid")
    await publish(gone, good(1))
    await publish(gone, good(1), summary(score_name="old"))
    assert await publish(second, good(2)) is not None
    clock.pass_(90)
    await asyncio.sleep(90)
    assert await publish(second, good(2)) is None
    assert second.unready_reason() is None
    assert values(await status(hub)) == [2]
    await second.sweep(lambda: {"my_score"})
    assert await objects(hub) == {"my-score"}
    failure = await publish(gone, good(3))
    assert failure is not None
    assert "second-uid" in failure.message


async def test_an_agent_that_stands_by_writes_and_deletes_nothing(
    hub: EmbeddedHub, clock: Clock
) -> None:
    await publish(of(hub, clock, "same"), good(1))
    counting = Counting(hub)
    second = of(counting, clock, "same")
    second.identity.rival = "pod-a"
    failure = await publish(second, good(2))
    assert failure is not None
    assert "pod-a" in failure.message
    await second.sweep(set)
    assert counting.writes == 0
    assert second.unready_reason()


async def test_a_restarted_agent_and_one_before_the_upgrade_are_no_strangers(
    hub: EmbeddedHub, clock: Clock
) -> None:
    await publish(Publisher(hub, CLUSTER, clock), good(1))
    for _ in range(2):
        assert await publish(of(hub, clock, "same"), good(1)) is None
    told = {one["type"]: one for one in (await status(hub))["conditions"]}
    assert told["Publisher"]["message"] == "same"


@dataclass
class Line:
    """A connection to a hub; where it is cut, answers break in the middle of their body."""

    cut: bool = False

    @asynccontextmanager
    async def through(self, port: int) -> AsyncIterator[str]:
        async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            answers, requests = await asyncio.open_connection("127.0.0.1", port)
            sending = asyncio.create_task(self._pass(reader, requests))
            await self._pass(answers, writer, breakable=True)
            sending.cancel()
            for end in (requests, writer):
                end.transport.abort()

        server = await asyncio.start_server(relay, "127.0.0.1", 0)
        async with server:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"

    async def _pass(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, breakable: bool = False
    ) -> None:
        while piece := await reader.read(1 << 16):
            if breakable and self.cut:
                head, _, body = piece.partition(b"\r\n\r\n")
                writer.write(head + b"\r\n\r\n" + body[:5])
                await writer.drain()
                return
            writer.write(piece)
            await writer.drain()


async def test_a_connection_that_breaks_in_an_answers_body_loses_and_repeats_nothing(
    hub: EmbeddedHub, clock: Clock, tmp_path: Path
) -> None:
    line = Line()
    async with serving(hub) as url, line.through(int(url.rpartition(":")[2])) as cut_url:
        config = tmp_path / "kubeconfig"
        config.write_text(yaml.safe_dump(kubeconfig(cut_url)), encoding="utf-8")
        async with connect(config) as kube:
            at_once = Backoff(1e-6, 1e-6)
            publisher = Publisher(kube, CLUSTER, clock, WritePauses(lambda: 0.0, silent=at_once))
            for round_, cut in enumerate((True, False, True, True, False, False)):
                line.cut = cut
                failure = await publish(publisher, good(round_))
                assert (failure.reason if failure else "") == ("Unreachable" if cut else "")
                if not cut:
                    assert values(await status(hub)) == [round_]
