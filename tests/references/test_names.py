"""The page of names is current, and has each label and annotation of the contract."""

from dsf.api import names
from tests.references.names import ANNOTATIONS, LABELS, PAGE, page


def test_the_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: make references"


def test_no_label_or_annotation_is_missing() -> None:
    stated = {
        value
        for name, value in vars(names).items()
        if name.endswith(("_LABEL", "_ANNOTATION")) and isinstance(value, str)
    }
    assert stated <= LABELS.keys() | ANNOTATIONS.keys()
