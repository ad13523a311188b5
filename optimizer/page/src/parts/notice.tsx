import type { Problem } from "../api/wire";

const NEXT: Record<number, string> = {
  401: "Enter a token of the hub that is still valid.",
  403: "Ask for the right that is named, or use the token of somebody who has it.",
  409: "The hub changed meanwhile. Plan again and look at the new plan.",
  429: "Too many plans are being made. Try again in a moment.",
  503: "The hub can't be reached. The page asks again by itself.",
};

/** What went wrong, where, and what to do. */
export function ProblemNotice({ problem }: { problem: Problem }) {
  return (
    <div class="notice bad" role="alert">
      <strong>{problem.title}</strong>
      {problem.detail && <p>{problem.detail}</p>}
      {NEXT[problem.status] && <p>{NEXT[problem.status]}</p>}
    </div>
  );
}

/** Says that something takes its time. */
export function Busy({ what }: { what: string }) {
  return (
    <p class="busy" role="status">
      {what}…
    </p>
  );
}
