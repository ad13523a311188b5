"""What is unpacked of a record is bounded, read in a thread, and only if the record is intact."""

import base64
import gzip
import json
import sys
import tracemalloc
from collections.abc import Iterator
from contextlib import aclosing, contextmanager
from types import FrameType
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from dsf.api.scoring.scorer_summary import MAX_VALUES, ScorerSummary, load_summaries
from dsf.api.untrusted_text import InvalidInput
from dsf.kube import kinds
from optimizer.follow.record.content import (
    MAX_CONTENT_BYTES,
    MAX_CONTENT_VALUES,
    RecordContent,
    packed,
    unpacked,
)
from optimizer.follow.record.recorded_plan import record_digest
from optimizer.wire.plan_record import RolloutPlan
from tests.optimizer.build import body
from tests.optimizer.follow.record.test_rollback import recorded, refusal, replaced, two_plans
from tests.optimizer.follow.rollout.guide_rollout import guide_rollout
from tests.optimizer.hubs import hub_of
from tests.optimizer.operations.test_recorded_plans import WHERE, client

MIB = 1 << 20


def bomb(request: str) -> str:
    """Return a packed content with a request; the rest is right."""
    lists = ", ".join(f'"{name}": []' for name in ("policies", "assignments", "objects", "changes"))
    text = f'{{"request": {request}, {lists}, "assumptions": {{}}}}'
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


@pytest.mark.parametrize(
    ("request_text", "most"),
    [
        (f'{{"a": [{"[]," * MAX_CONTENT_VALUES}0]}}', 8 * MIB),
        (f'{{"a": "{"x" * MAX_CONTENT_BYTES}"}}', 40 * MIB),
        (f'{{"a": {"[" * 300}{"]" * 300}}}', MIB),
    ],
    ids=["values", "bytes", "depth"],
)
async def test_a_record_that_becomes_too_much_is_refused_before_it_does(
    request_text: str, most: int
) -> None:
    """Even where the digest was made to match."""
    hub, service = await two_plans()
    found = await hub.get(kinds.PLACEMENT_PLAN, "default-1", "default")
    spec = {**found["spec"], "content": bomb(request_text)}
    await replaced(hub, found, {**spec, "recordDigest": record_digest(spec)})
    assert len(spec["content"]) < 100_000
    (record,) = [item for item in await recorded(hub) if item.name == "default-1"]
    tracemalloc.start()
    try:
        content = record.content()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert isinstance(content, InvalidInput)
    assert peak < most
    refused = await refusal(service)
    assert (refused.status, refused.reason) == (409, "UnusableRecord")


async def test_the_refusal_names_the_limit() -> None:
    found = unpacked(bomb(f'{{"a": [{"0," * MAX_CONTENT_VALUES}0]}}'), RecordContent)
    assert isinstance(found, InvalidInput)
    assert found.message.endswith(f"more than {MAX_CONTENT_BYTES} bytes or 400000 values")


def test_what_could_not_be_read_again_is_not_packed() -> None:
    fits = RecordContent(
        request={"a": [0] * (MAX_CONTENT_VALUES - 100)},
        policies=(),
        assignments=(),
        objects=(),
        changes=(),
        assumptions={},
    )
    text = packed(fits)
    assert text is not None
    assert unpacked(text, RecordContent) == fits
    assert packed(fits.model_copy(update={"request": {"a": [0] * MAX_CONTENT_VALUES}})) is None


async def test_an_edited_record_is_not_unpacked_at_all() -> None:
    hub, _ = await two_plans()
    found = await hub.get(kinds.PLACEMENT_PLAN, "default-1", "default")
    await replaced(hub, found, {**found["spec"], "content": "no base64"})
    (record,) = [item for item in await recorded(hub) if item.name == "default-1"]
    content = record.content()
    assert isinstance(content, InvalidInput)
    assert content.reason == "RecordEdited"


async def test_edited_steps_are_not_unpacked_at_all() -> None:
    rollout = await guide_rollout()
    name = await rollout.begin()
    found = await rollout.hub.get(kinds.PLACEMENT_PLAN, name, "default")
    await rollout.hub.delete(kinds.PLACEMENT_PLAN, name, "default")
    spec = {**found["spec"], "rollout": "no base64"}
    metadata = {key: found["metadata"][key] for key in ("name", "namespace", "labels")}
    await rollout.hub.create(kinds.PLACEMENT_PLAN, {**found, "metadata": metadata, "spec": spec})
    record = await rollout.record(name)
    assert isinstance(record.plan, InvalidInput)
    assert record.plan.reason == "RecordEdited"


def wrong(schema: Any, part: str) -> Iterator[Any]:
    """Yield values of a JSON schema with a collection of 1,000 wrong items in each place."""
    of = schema
    while "$ref" in of or "anyOf" in of:
        of = of["anyOf"][0] if "anyOf" in of else DEFS[part][of["$ref"].rpartition("/")[2]]
    if of.get("type") == "array":
        items = of.get("items") or {"type": "null"}
        yield [None] * 1000
        for inner in wrong(items, part):
            yield [inner]
    elif of.get("properties"):
        for name, field in of["properties"].items():
            for inner in wrong(field, part):
                yield {name: inner}


TYPES = {
    "content": TypeAdapter(RecordContent),
    "steps": TypeAdapter(RolloutPlan),
    "summary": TypeAdapter(ScorerSummary),
}
SCHEMAS = {name: of.json_schema() for name, of in TYPES.items()}
DEFS = {name: schema.get("$defs", {}) for name, schema in SCHEMAS.items()}
WRONG = [
    pytest.param(name, value, id=f"{name}-{index}")
    for name, schema in SCHEMAS.items()
    for index, value in enumerate(wrong(schema, name))
]


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_a_thousand_wrong_items_are_one_error(name: str, value: Any) -> None:
    """Otherwise a small text becomes millions of errors, of which only the first is told."""
    with pytest.raises(ValidationError) as raised:
        TYPES[name].validate_json(json.dumps(value))
    assert raised.value.error_count() < 60


def test_summaries_have_a_bounded_number_of_values() -> None:
    found = load_summaries(f"[{'{},' * MAX_VALUES}{{}}]")
    assert isinstance(found, InvalidInput)
    assert str(MAX_VALUES) in found.message


@contextmanager
def unpacking_here() -> Iterator[list[str]]:
    """Collect who unpacks contents in this thread."""
    found: list[str] = []

    def look(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code is unpacked.__code__:
            found.append(str(frame.f_back))

    sys.setprofile(look)
    try:
        yield found
    finally:
        sys.setprofile(None)


async def test_no_content_is_unpacked_by_the_event_loop() -> None:
    hub = await hub_of()
    async with client(hub) as http:
        await http.post("/optimize", json=body())
        with unpacking_here() as found:
            second = (await http.post("/optimize", json=body("power"))).json()
            shown = await http.get(f"/plans/{second['digest']}", params=WHERE)
            restored = await http.post("/rollback", json=WHERE)
            status = await http.get("/placements/status", params=WHERE)
    assert [each.status_code for each in (shown, restored, status)] == [200] * 3
    assert found == []


async def test_no_step_is_unpacked_by_the_event_loop() -> None:
    rollout = await guide_rollout()
    name = await rollout.begin()
    service = rollout.service()
    with unpacking_here() as found:
        assert await service.rollouts.records.of_namespace("default")
        assert await service.rollouts.records.find("default", "default")
        assert await service.rollouts.records.in_progress("default")
        record = await service.rollouts.records.find("default", "default")
        assert record is not None
        await service.rollouts.advance("default", name)
        async with aclosing(service.rollouts.records.changes(record)) as versions:
            assert (await anext(versions)).progress == record.progress
            assert (await anext(versions)).progress != record.progress
            await rollout.command("pause")
            assert (await anext(versions)).progress.paused
    assert found == []
