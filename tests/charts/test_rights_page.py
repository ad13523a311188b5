"""docs/reference/rights.md has each rule that the charts grant, its reason, and a test."""

from tests.charts.rights_page import NEEDED, PATH, WHY, page, roles
from tests.repository import ROOT


def test_the_page_is_what_the_charts_grant() -> None:
    assert PATH.read_text(encoding="utf-8") == page(), "run python -m tests.charts.rights_page"


def test_each_reason_is_that_of_a_rule_and_each_test_exists() -> None:
    granted = {
        (role["metadata"]["name"], resource)
        for role in roles()
        for rule in role["rules"]
        for resource in rule["resources"]
    }
    assert granted == {(name, resource) for name, whys in WHY.items() for resource in whys}
    for test in NEEDED.values():
        file, _, function = test.partition("::")
        assert f"def {function}" in (ROOT / file).read_text()
