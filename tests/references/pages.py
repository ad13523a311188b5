"""The pages of docs/reference that are written from the code: each module has `PAGE` and `page`."""

from tests.dsf.api.crd import field_reference
from tests.monitoring import metrics_reference
from tests.references import command_line, names, rest_api, scorer_summary, tested_versions

PAGES = (
    field_reference,
    metrics_reference,
    command_line,
    names,
    rest_api,
    scorer_summary,
    tested_versions,
)
