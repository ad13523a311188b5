"""The page as a file that shows one plan: drawn by the page's own code, offline, asking nobody."""

import json
import re

from optimizer.api.page_route import content_policy
from optimizer.follow.overview.fleet_matrix import FleetMatrix
from optimizer.follow.overview.plan_request import PlanResult
from optimizer.follow.record.recorded_plan import recorded_request
from optimizer.plan.plan import Plan, result

HEAD = "<head>"
"""After this stand the policy of a built page and the plan, before anything is loaded."""

_SERVED_ONLY = re.compile("; (connect-src|frame-ancestors) [^;]*")
"""Directives that a file needs not, or that a browser takes from a header alone."""


def page_of_plan(page: str, plan: Plan, fleet: FleetMatrix) -> str:
    """Return the built page with a plan and its fleet inside, under the policy of the page.

    Raises ValueError if the page has no HEAD.
    """
    told = PlanResult(**dict(result(plan, None)), request=recorded_request(plan))
    shown = {
        "plan": told.model_dump(mode="json", exclude={"output_yaml"}),
        "fleet": fleet.model_dump(mode="json"),
    }
    policy = _SERVED_ONLY.sub("", content_policy(page.encode()))
    meta = f'<meta http-equiv="Content-Security-Policy" content="{policy}" />'
    inert = json.dumps(shown).replace("<", "\\u003c")  # no text of others ends the script
    data = f'<script type="application/json" id="picture">{inert}</script>'
    at = page.index(HEAD) + len(HEAD)
    return page[:at] + meta + data + page[at:]
