"""One round of every scorer, and the inventory, printed and not published: a dry run."""

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

import yaml

from dsf.agent.inventory.inventory_publisher import new_inventory
from dsf.agent.inventory.inventory_status import inventory_patch
from dsf.agent.inventory.watch import InventoryWatch
from dsf.agent.publish.placement_score import placement_score, status_patch
from dsf.agent.round import Round
from dsf.agent.run import AgentSettings, read, round_runner, summaries_of
from dsf.agent.score.expiry import validity
from dsf.agent.score.explanation import explain
from dsf.agent.score.result_rules import declared_default
from dsf.agent.scorer_selection import read_scorers
from dsf.api import names
from dsf.api.untrusted_text import InvalidInput, escaped_lines
from dsf.kube.clock import utc_now
from dsf.kube.errors import NotFound
from dsf.kube.kinds import CONFIG_MAP
from dsf.kube.port import Kube, Object

INVENTORY_SECONDS = 60.0


async def perform_once(
    settings: AgentSettings, managed: Kube | None, *, explaining: bool = False
) -> tuple[Round, ...] | InvalidInput:
    """Run one round of every scorer concurrently. Raises KubeError."""
    text = await _text(settings, managed)
    if isinstance(text, InvalidInput):
        return text
    read_config = read_scorers(text)
    if isinstance(read_config, InvalidInput):
        where = settings.summaries_file or f"ConfigMap {settings.namespace}/{names.CONFIG_MAP}"
        return InvalidInput(read_config.reason, f"{where}: {read_config.message}")
    if read_config.problems:
        return read_config.problems[0]
    async with round_runner(settings, managed, utc_now) as plain:
        performer = replace(plain, explaining=explaining)
        rounds = [performer.perform(summary) for summary in read_config.summaries]
        return tuple(await asyncio.gather(*rounds))


async def inventory_once(settings: AgentSettings, managed: Kube | None) -> str | InvalidInput:
    """Return the NodeInventory that would be published, as a YAML document; empty without one."""
    if not settings.inventory or managed is None:
        return ""
    watch = InventoryWatch(managed, settings.inventory_node_labels)
    watching = asyncio.create_task(watch.run())
    try:
        async with asyncio.timeout(INVENTORY_SECONDS):
            summary = await watch.first_summary()
    except TimeoutError:
        message = f"nodes and Pods could not be listed within {INVENTORY_SECONDS:g} s: see the log"
        return InvalidInput("DeadlineExceeded", message)
    finally:
        watching.cancel()
    if summary.fields["nodes"] is None:
        return InvalidInput(summary.condition.reason, summary.condition.message)
    now = utc_now()
    inventory: Object = new_inventory(settings.cluster)
    unseen = {"metadata": {"resourceVersion": ""}}
    inventory |= {"status": inventory_patch(unseen, summary, confirmed=now, now=now)["status"]}
    return _yaml(inventory)


def render(cluster: str, rounds: Iterable[Round], now: datetime) -> str:
    """Return the AddOnPlacementScores that would be published, as a YAML stream."""
    return "".join(_document(cluster, done, now) for done in rounds)


def explained(rounds: Iterable[Round]) -> str:
    """Return where each value came from, scorer by scorer."""
    explanations = [
        explain(done.summary, done.evidence, done.report.scores, done.failure)
        for done in rounds
        if done.evidence
    ]
    return "\n".join(explanations)


def _document(cluster: str, done: Round, now: datetime) -> str:
    summary = done.summary
    obj: Object = placement_score(cluster, summary.score_name)
    unseen = {"metadata": {"resourceVersion": ""}}
    patch = status_patch(
        unseen,
        done.report,
        now=now,
        valid_for=validity(summary.scoring_interval),
        default=declared_default(summary, cluster),
    )
    obj["status"] = (patch or {}).get("status")
    note = "# scoreDestination None: only on /metrics\n"
    return _yaml(obj, note if summary.score_destination == "None" else "")


def _yaml(obj: Object, note: str = "") -> str:
    text = yaml.safe_dump(obj, sort_keys=False, allow_unicode=True, width=100)
    if escaped_lines(text) != text:
        text = yaml.safe_dump(obj, sort_keys=False, width=100)
    return f"---\n{note}{text}"


async def _text(settings: AgentSettings, managed: Kube | None) -> str | InvalidInput:
    if settings.summaries_file is not None:
        text = await asyncio.to_thread(read, settings.summaries_file)
        message = f"{settings.summaries_file} can't be read"
        return InvalidInput("FileUnreadable", message) if text is None else text
    if managed is None:
        raise ValueError("either a summaries file or the managed cluster's API server is required")
    try:
        found = await managed.get(CONFIG_MAP, names.CONFIG_MAP, settings.namespace)
    except NotFound:
        message = f"no ConfigMap {names.CONFIG_MAP} in namespace {settings.namespace}"
        return InvalidInput("ConfigMapNotFound", f"{message}; or name a file with --summaries-file")
    return summaries_of(found)
