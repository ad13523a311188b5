"""The syntax of names and labels: patterns for schemas, and checks in the API server's words.

A check returns a list of problems, empty if the text is valid.

Source: https://kubernetes.io/docs/concepts/overview/working-with-objects/names/ and .../labels/
"""

import re

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_QUALIFIED = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_CONFIG_KEY = r"[-._a-zA-Z0-9]+"

DNS_LABEL, DNS_LABEL_LENGTH = f"^{_LABEL}$", 63
"""An RFC 1123 label: the form of namespaces."""
DNS_SUBDOMAIN, DNS_SUBDOMAIN_LENGTH = f"^{_SUBDOMAIN}$", 253
"""An RFC 1123 subdomain: the form of most names."""
LABEL_VALUE, LABEL_VALUE_LENGTH = f"^({_QUALIFIED})?$", 63

_QUALIFIED_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character"
)


def dns_label(text: str) -> list[str]:
    """Check a lower case RFC 1123 label: the form of namespaces."""
    problems = _too_long(text, DNS_LABEL_LENGTH)
    if not re.fullmatch(_LABEL, text, re.ASCII):
        if re.fullmatch(_SUBDOMAIN, text, re.ASCII):
            return [*problems, "must not contain dots"]
        rule = (
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or "
            "'-', and must start and end with an alphanumeric character"
        )
        problems.append(_described(rule, _LABEL, "my-name", "123-abc"))
    return problems


def dns_subdomain(text: str) -> list[str]:
    """Check a lower case RFC 1123 subdomain: the form of most names."""
    problems = _too_long(text, DNS_SUBDOMAIN_LENGTH)
    if not re.fullmatch(_SUBDOMAIN, text, re.ASCII):
        rule = (
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, "
            "'-' or '.', and must start and end with an alphanumeric character"
        )
        problems.append(_described(rule, _SUBDOMAIN, "example.com"))
    return problems


def qualified_name(text: str) -> list[str]:
    """Check the form of label keys, annotation keys and finalizers: `prefix/name` or `name`."""
    parts = text.split("/")
    examples = ("MyName", "my.name", "123-abc")
    if len(parts) > 2:  # noqa: PLR2004 - a prefix and a name
        described = _described(_QUALIFIED_RULE, _QUALIFIED, *examples)
        optional = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a valid label key {described} {optional}"]
    problems = _prefix_problems(parts[0]) if len(parts) > 1 else []
    name = parts[-1]
    if not name:
        problems.append("name part must be non-empty")
    problems += [f"name part {problem}" for problem in _too_long(name, 63)]
    if not re.fullmatch(_QUALIFIED, name, re.ASCII):
        problems.append(f"name part {_described(_QUALIFIED_RULE, _QUALIFIED, *examples)}")
    return problems


def label_value(text: str) -> list[str]:
    """Check the value of a label."""
    problems = _too_long(text, LABEL_VALUE_LENGTH)
    if text and not re.fullmatch(_QUALIFIED, text, re.ASCII):
        rule = (
            "a valid label must be an empty string or consist of alphanumeric characters, '-', "
            "'_' or '.', and must start and end with an alphanumeric character"
        )
        problems.append(_described(rule, f"({_QUALIFIED})?", "MyValue", "my_value", "12345"))
    return problems


def config_key(text: str) -> list[str]:
    """Check a key of a ConfigMap or a Secret."""
    problems = _too_long(text, 253)
    if not re.fullmatch(_CONFIG_KEY, text, re.ASCII):
        rule = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
        problems.append(_described(rule, _CONFIG_KEY, "key.name", "KEY_NAME", "key-name"))
    if text in {".", ".."}:
        problems.append(f"must not be '{text}'")
    elif text.startswith(".."):
        problems.append("must not start with '..'")
    return problems


def _prefix_problems(prefix: str) -> list[str]:
    if not prefix:
        return ["prefix part must be non-empty"]
    return [f"prefix part {problem}" for problem in dns_subdomain(prefix)]


def _too_long(text: str, limit: int) -> list[str]:
    return [f"must be no more than {limit} bytes"] if len(text.encode()) > limit else []


def _described(rule: str, pattern: str, *examples: str) -> str:
    named = " or ".join(f"'{example}', " for example in examples)
    return f"{rule} (e.g. {named}regex used for validation is '{pattern}')"
