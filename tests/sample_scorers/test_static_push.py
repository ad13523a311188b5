"""The static scorer's program pushes to a real agent when its file changes."""

import secrets
from pathlib import Path

import pytest

from dsf.agent.push_receiver import PushSettings
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.kinds import ADD_ON_PLACEMENT_SCORE, NAMESPACE
from sample_scorers.static.__main__ import main
from tests.dsf.agent.conftest import AGENT_NAMESPACE, CLUSTER
from tests.dsf.agent.test_push_receiver import distribute, give_token, hourly, running_agent
from tests.eventually import eventually
from tests.sample_scorers.serving import started
from tests.sample_scorers.test_programs import module

SCORES = (
    "[{path: /mine, name: mine, description: d, scoreName: s, interval: 5, scores: {a: {b: %s}}}]"
)


async def test_changed_scores_are_published_at_once(tmp_path: Path) -> None:
    hub, managed = EmbeddedHub(), EmbeddedHub()
    await hub.create(NAMESPACE, {"metadata": {"name": CLUSTER}})
    await managed.create(NAMESPACE, {"metadata": {"name": AGENT_NAMESPACE}})
    token = secrets.token_urlsafe(32)
    await give_token(managed, "mine", token)
    file, token_file = tmp_path / "scores.yaml", tmp_path / "token"
    file.write_text(SCORES % 7)
    token_file.write_text(token)

    async def value() -> int | None:
        found = (await hub.list(ADD_ON_PLACEMENT_SCORE, CLUSTER)).items
        entries = [one for obj in found for one in (obj.get("status") or {}).get("scores", [])]
        return entries[0]["value"] if entries else None

    async def published(wanted: int) -> None:
        async def there() -> bool:
            return await value() == wanted

        await eventually(there)

    async with running_agent(hub, managed, PushSettings("127.0.0.1:0", 1)) as (push_url, _):
        options = ("--scores", str(file), "--token-file", str(token_file), "--push-url", push_url)
        with started(module("static", "--port", "0", *options)) as url:
            scorer = hourly("mine", url, scoring_endpoint=f"{url}/mine/scoring")
            await distribute(
                managed, scorer.model_copy(update={"score_dimension_format": "${app}"})
            )
            await published(7)
            file.write_text(SCORES % 9)
            await published(9)


def test_options_of_pushes_need_each_other(tmp_path: Path) -> None:
    pem, token = tmp_path / "ca.crt", tmp_path / "token"
    pem.write_text("no certificate")
    token.write_text("t")
    pushing = ["--push-url", "http://agent:8081", "--token-file", str(token)]
    assert main([*pushing, "--push-ca-file", str(pem)]) == 1
    for options in (pushing[:2], ["--push-ca-file", str(pem)]):
        with pytest.raises(SystemExit, match="2"):
            main(options)
