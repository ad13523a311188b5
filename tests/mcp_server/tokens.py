"""How tests and evals count tokens: by bytes, as tokenizers have to fetch their vocabulary.

Measured with cl100k in November 2026: definitions of tools have 4.3 bytes per token, texts of
results 3.1 to 3.7, their JSON 3.4 to 3.6. Both rules below count more than that tokenizer does.
"""

import json
from typing import Any

DEFINITION_BYTES = 4
RESULT_BYTES = 3


def definition_tokens(definitions: list[dict[str, Any]]) -> float:
    """Return at most how many tokens definitions take as compact JSON, without icons.

    A model gets name, description and input schema; titles, hints and output schemas count besides.
    """
    shown = [{key: item[key] for key in item if key != "icons"} for item in definitions]
    return len(_compact(shown).encode()) / DEFINITION_BYTES


def result_tokens(result: Any) -> float:
    """Return at most how many tokens a result of a tool takes: its text and its structure."""
    text = "".join(item.text for item in result.content)
    return answer_tokens(text, result.structured_content)


def answer_tokens(text: str, structured: Any) -> float:
    """Return at most how many tokens a text and its structure take, if it has one."""
    said = text if structured is None else text + _compact(structured)
    return len(said.encode()) / RESULT_BYTES


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
