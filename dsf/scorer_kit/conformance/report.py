"""The report of a check: a table for people, JSON for programs."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from dsf.api.plural import counted
from dsf.api.untrusted_text import UntrustedName, escaped
from dsf.scorer_kit.conformance.evidence import Finding

CheckStatus = Literal["passed", "warned", "failed", "skipped"]
_MARKS: dict[CheckStatus, str] = {
    "passed": "ok",
    "warned": "WARN",
    "failed": "FAIL",
    "skipped": "-",
}


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What became of one check; `skipped` says why it was not made, empty if it was."""

    name: str
    promise: str
    findings: Sequence[Finding] = ()
    skipped: str = ""

    @property
    def status(self) -> CheckStatus:
        """Whether it passed."""
        if self.skipped:
            return "skipped"
        severities = {finding.severity for finding in self.findings}
        return "failed" if "error" in severities else "warned" if severities else "passed"


@dataclass(frozen=True, slots=True)
class ConformanceReport:
    """The results of all checks, and what the calls cost.

    `dimension_format` is the author's, or else the one that the results suggest.
    """

    url: str
    scorer: str
    dimension_format: str
    results: Sequence[CheckResult]
    calls: int
    slowest_seconds: float

    @property
    def passed(self) -> bool:
        """Whether no check failed; what was skipped does not count."""
        return all(result.status != "failed" for result in self.results)

    def document(self) -> dict[str, Any]:
        """Return the report as JSON."""
        return {
            "url": self.url,
            "scorer": self.scorer,
            "passed": self.passed,
            "scoreDimensionFormat": self.dimension_format,
            "calls": self.calls,
            "slowestSeconds": round(self.slowest_seconds, 3),
            "checks": [
                {
                    "name": result.name,
                    "status": result.status,
                    "promise": result.promise,
                    "findings": [asdict(finding) for finding in result.findings],
                    **({"skipped": result.skipped} if result.skipped else {}),
                }
                for result in self.results
            ],
        }

    def text(self) -> str:
        """Return the report as lines for a terminal."""
        named = f" ({UntrustedName(self.scorer)})" if self.scorer else ""
        lines = [f"{self.url}{named}", *self._lines(), self._total()]
        return "\n".join(map(escaped, lines)) + "\n"

    def _lines(self) -> Iterator[str]:
        width = max(len(result.name) for result in self.results)
        for result in self.results:
            said = f"skipped: {result.skipped}" if result.skipped else result.promise
            yield f"  {_MARKS[result.status]:4}  {result.name.ljust(width)}  {said}"
            for finding in result.findings:
                yield f"        {finding.severity}: {finding.what}"
                yield f"          fix: {finding.fix}"

    def _total(self) -> str:
        count = Counter(result.status for result in self.results)
        said = f"{count['passed']} passed, {counted(count['warned'], 'warning')}"
        cost = f"{counted(self.calls, 'call')}, the slowest {self.slowest_seconds * 1000:.0f} ms"
        form = f"; scoreDimensionFormat {self.dimension_format}" if self.dimension_format else ""
        return f"{said}, {count['failed']} failed, {count['skipped']} skipped; {cost}{form}"
