"""Reads the scenario of a YAML file."""

from pathlib import Path

from pydantic import ValidationError

from dsf.kube.yaml_documents import YamlFileError, documents
from optimizer.twin.scenario import Scenario
from optimizer.wire.request_problem import field_problems, known_fields

_FIELDS = known_fields(Scenario)


def read_scenario(path: Path) -> Scenario:
    """Return the scenario of a file. Raises YamlFileError, which names each wrong field."""
    found = list(documents(path))
    if len(found) != 1:
        raise YamlFileError(f"{path}: {len(found)} documents; a scenario is one")
    return scenario_of(found[0].value, str(path))


def scenario_of(value: object, where: str) -> Scenario:
    """Return the scenario of a JSON value. Raises YamlFileError, which names each wrong field."""
    try:
        return Scenario.model_validate(value)
    except ValidationError as error:
        problems = field_problems(error.errors(include_input=False, include_url=False), _FIELDS)
        wrong = "; ".join(f"{item.field}: {item.message}" for item in problems)
        raise YamlFileError(f"{where}: {wrong}") from error
