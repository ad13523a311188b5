"""What checks send to a scoring API, what came back, what they find, and their report."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from dsf.agent.failure import Failure
from dsf.agent.wire.http_answer import HttpAnswer
from dsf.agent.wire.scoring_answer import ScoringResult
from dsf.agent.wire.scoring_request import EncodedSeries, ScoringRequestBody
from dsf.api.scoring.scorer_summary import ScorerSummary
from dsf.api.untrusted_text import UntrustedName, counted, escaped
from dsf.hub.snapshot.registered_scorer import ProbeFailure
from dsf.scorer_kit.invented_series import SeriesForm
from dsf.scorer_kit.scorer_target import ScorerTarget

JSON = "application/json"
TokenUse = Literal["given", "none", "wrong"]


@dataclass(frozen=True, slots=True)
class CheckSettings:
    """What an author chose for a check.

    `series` and `samples` are the size of the largest request, `typical` the series of a usual one
    (None: invented ones), `seconds` the time of a call (None: what the agent allows), `total` the
    time of all checks. `skipped` names checks.
    """

    series: int = 500
    samples: int = 60
    typical: Sequence[EncodedSeries] | None = None
    token: str = ""
    seconds: float | None = None
    total: float = 120.0
    skipped: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class CheckInput:
    """What the calls of a check are made of: forms of series, and those of a typical request.

    There is a form for each source. `context` and `params` are the JSON of what the config asks for
    besides, empty for nothing.
    """

    forms: Sequence[SeriesForm]
    typical: Sequence[EncodedSeries]
    settings: CheckSettings
    without_source: bool
    context: bytes = b""
    params: bytes = b""

    def body(self, series: Sequence[EncodedSeries]) -> ScoringRequestBody:
        """Return the body of a scoring call."""
        return ScoringRequestBody(series, self.context, self.params)


@dataclass(frozen=True, slots=True)
class CheckCall:
    """One POST to the scoring endpoint."""

    body: bytes | ScoringRequestBody
    content_type: str = JSON
    token: TokenUse = "given"  # noqa: S105 - says which token


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """What came back of a call: the answer, the results in it, and the seconds that it took."""

    answer: HttpAnswer | Failure
    results: list[ScoringResult] | Failure
    seconds: float

    @property
    def late(self) -> bool:
        """Whether there was no complete answer in time."""
        return isinstance(self.answer, Failure) and self.answer.reason == "DeadlineExceeded"

    @property
    def ok(self) -> bool:
        """Whether the status is 2xx."""
        return isinstance(self.answer, HttpAnswer) and self.answer.ok

    @property
    def status(self) -> int:
        """The HTTP status, 0 without an answer."""
        return 0 if isinstance(self.answer, Failure) else self.answer.status


NO_CALL = CallOutcome(Failure("scoring", "NotCalled", "no call was made"), [], 0.0)


@dataclass(slots=True)
class CallCounts:
    """All calls of a run so far: how many, the slowest, and whether one had no answer in time.

    Of their answers only the first is kept, because each may have megabytes.
    """

    typical: CallOutcome = NO_CALL
    number: int = 0
    slowest_seconds: float = 0.0
    late: bool = False

    def add(self, outcome: CallOutcome) -> None:
        """Count a call; the first is the typical request."""
        if not self.number:
            self.typical = outcome
        self.number += 1
        self.slowest_seconds = max(self.slowest_seconds, outcome.seconds)
        self.late = self.late or outcome.late


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a check judges: the target, the outcomes of its own calls, and all calls so far.

    `seconds` is the time of a call. `health` is why the health endpoint failed after the check's
    calls; None if it did not.
    """

    target: ScorerTarget
    seconds: float
    calls: CallCounts
    outcomes: Sequence[CallOutcome] = ()
    health: ProbeFailure | None = None

    @property
    def typical(self) -> CallOutcome:
        """The outcome of the typical request."""
        return self.calls.typical

    @property
    def summary(self) -> ScorerSummary:
        """The summary that agents would get. Raises TypeError if there is none."""
        if not isinstance(self.target.summary, ScorerSummary):
            raise TypeError("a check that needs the summary was not skipped")
        return self.target.summary


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong, and how to mend it. Only errors make a check fail."""

    severity: Literal["error", "warning"]
    what: str
    fix: str


def error(what: str, fix: str) -> Finding:
    """Return a finding that makes the check fail."""
    return Finding("error", what, fix)


def warning(what: str, fix: str) -> Finding:
    """Return a finding that does not make the check fail."""
    return Finding("warning", what, fix)


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
