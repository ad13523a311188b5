"""Each place that decodes what others wrote says what bounds it.

A small text can become much: gzip a thousand times its size, JSON thirty times, its errors a
hundred times, and aliases of YAML any number of times. A new reader is named here with its bound.
"""

import ast
from collections.abc import Iterator

from tests.house.test_vocabulary import is_test
from tests.repository import ROOT

PACKAGES = ("dsf", "optimizer", "mcp_server", "policy_watcher", "sample_scorers")

DECODERS = frozenset(
    {
        "Decoder",
        "GzipFile",
        "Unpickler",
        "b64decode",
        "decompress",
        "decompressobj",
        "from_json",
        "json",
        "literal_eval",
        "load_all",
        "loads",
        "model_validate_json",
        "raw_decode",
        "safe_load",
        "safe_load_all",
        "urlsafe_b64decode",
        "validate_json",
    }
)
"""Names of calls that decode JSON, YAML, gzip, base64 or Python's own formats."""

ANSWER = "an answer within the agent's limits of bytes, series and results"
OWN = "this program's own text"
SERVER = "an object of the API server, which bounds its objects; pages bound lists"
USER = "a file or program that the user names, read by nobody else"

BOUNDS = {
    "dsf/agent/fetch/bounded_body.py:_member": "PIECE_BYTES at a time, up to max_bytes",
    "dsf/agent/fetch/bounded_body.py:pieces": "PIECE_BYTES at a time, up to max_bytes",
    "dsf/agent/fetch/issued_tokens.py:": "TOKEN_BYTES",
    "dsf/agent/inventory/devices.py:summarize_devices": OWN,
    "dsf/agent/inventory/device_pools.py:_read_pool": OWN,
    "dsf/agent/score/explanation.py:_sent": ANSWER,
    "dsf/agent/score/forecasts.py:": ANSWER,
    "dsf/agent/wire/foreign_text.py:": "LABELS_BYTES",
    "dsf/agent/wire/scoring_request.py:": ANSWER,
    "dsf/agent/wire/prometheus_answer.py:": "object_count, SAMPLES_BYTES and REMARKS_BYTES",
    "dsf/agent/wire/scoring_answer.py:": "object_count and NUMBER_BYTES",
    "dsf/agent/wire/secret_data.py:_data": SERVER,
    "dsf/api/scoring/scorer_summary.py:load_summaries": "MAX_VALUES, and the first error only",
    "dsf/cli/output.py:document_of": OWN,
    "dsf/cli/prometheus.py:_data": "MAX_BYTES and MAX_VALUES",
    "dsf/hub/dispatch/field_ownership.py:_owned": SERVER,
    "dsf/hub/snapshot/config_document.py:read_config": "the prober's limit of bytes, first error",
    "dsf/kube/client/credentials.py:_printed": USER,
    "dsf/kube/client/kube_client.py:_object": SERVER,
    "dsf/kube/client/kube_client.py:_status": SERVER,
    "dsf/kube/client/kubeconfig.py:_decoded": USER,
    "dsf/kube/client/kubeconfig.py:_document": USER,
    "dsf/kube/resources/ocm/__init__.py:ocm_crd": OWN,
    "dsf/kube/schema/json_values.py:thawed": OWN,
    "dsf/kube/schema/string_formats.py:": "BODY_LIMIT",
    "dsf/kube/yaml_documents.py:parsed_json": "MAX_FILE_BYTES and MAX_DEPTH",
    "dsf/kube/yaml_documents.py:parsed_yaml": "MAX_FILE_BYTES, MAX_DEPTH, MAX_REPEATED",
    "dsf/scorer_kit/backtest/replay.py:_series": ANSWER,
    "dsf/scorer_kit/backtest/replay.py:_samples": ANSWER,
    "dsf/scorer_kit/backtest/replay.py:": ANSWER,
    "dsf/scorer_kit/pictures.py:_values": ANSWER,
    "dsf/scorer_kit/pictures.py:plot": ANSWER,
    "dsf/scorer_kit/series_file.py:prometheus_answer": "MOST_BYTES",
    "dsf/scorer_kit/templates/python_http/service.py:series_of": "MAX_BODY_BYTES",
    "dsf/scorer_kit/templates/shell/score.py:": OWN,
    "dsf/scorer_kit/templates/shell/score.py:score": USER,
    "dsf/sim/demo/running_demo.py:_call": OWN,
    "dsf/sim/demo/walkthrough.py:_planned": OWN,
    "dsf/scorer_kit/prometheus_replay.py:load": USER,
    "mcp_server/install/config_text.py:_parsed": "MAX_CONFIG_BYTES",
    "mcp_server/install/config_text.py:_spelled": "MAX_CONFIG_BYTES",
    "optimizer/api/request_guards.py:json": "MAX_BODY_BYTES",
    "optimizer/service/hub/score_history.py:read_series": ANSWER,
    "optimizer/plan/text/object_diffs.py:document": OWN,
    "optimizer/plan/basis.py:changed_facts": OWN,
    "optimizer/follow/record/content.py:_decompressed": "MAX_CONTENT_BYTES",
    "optimizer/follow/record/content.py:unpacked": (
        "MAX_CONTENT_BYTES, MAX_CONTENT_VALUES, first error"
    ),
    "optimizer/cli/hub_request.py:_what_if": USER,
    "optimizer/cli/top/fleet_reader.py:_object": "MAX_BYTES",
    "optimizer/service/record_keys.py:_key_of": SERVER,
    "optimizer/api/self_signed_certificate.py:_decoded": SERVER,
    "sample_scorers/llm_forecast/__main__.py:ask": "max_bytes",
    "sample_scorers/llm_forecast/score.py:read_reply": "max_bytes",
    "sample_scorers/llm_forecast/shared_model/completion_api.py:read_answer": "MAX_REPLY_BYTES",
    "sample_scorers/static/push.py:_detail": "MAX_DETAIL_BYTES",
    "sample_scorers/static/score.py:parse": USER,
    "sample_scorers/static/score.py:shipped": OWN,
}


def readers(node: ast.AST, function: str = "") -> Iterator[str]:
    """Yield the names of the functions below a node that call a decoder."""
    for child in ast.iter_child_nodes(node):
        inside = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        if isinstance(child, ast.Call):
            called = child.func
            name = getattr(called, "attr", getattr(called, "id", ""))
            if name in DECODERS:
                yield function
        yield from readers(child, getattr(child, "name", "") if inside else function)


def test_each_reader_of_what_others_wrote_names_its_bound() -> None:
    found = {
        f"{path.relative_to(ROOT)}:{function}"
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        if not is_test(path)
        for function in readers(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert found - BOUNDS.keys() == set(), "name what bounds these in BOUNDS"
    assert BOUNDS.keys() - found == set(), "these read nothing any more"
