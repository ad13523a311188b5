import type { Rollout, StepActions, StepSpan } from "../api/wire";
import { duration } from "../parts/times";

/** A step of a rollout on a line of time: shares of the whole time, and words for it. */
export interface ShownStep {
  number: number;
  actions: StepActions;
  /** The step that is being made. */
  current: boolean;
  bars: { start: number; width: number; back: boolean; open: boolean }[];
  told: string;
}

/** The steps of a rollout at a time (milliseconds); of steps without times only the order is known. */
export function shownSteps(rollout: Rollout, now: number): ShownStep[] {
  const times = rollout.step_times.flatMap((span) => [span.began, span.ended ?? span.began]);
  const known = times.map(Date.parse).filter(Number.isFinite);
  const first = Math.min(...known, now);
  // A reader's clock that is behind the hub's ends the line where the hub's last time is.
  const last = Math.max(...known, rollout.phase === "Progressing" ? now : -Infinity);
  const share = (time: number) => (last > first ? (time - first) / (last - first) : 0);
  return rollout.steps.map((actions, at) => {
    const number = at + 1;
    const spans = rollout.step_times.filter((span) => span.step === number);
    const current = rollout.phase === "Progressing" && number === rollout.step;
    return {
      number,
      actions,
      current,
      bars: spans.map((span) => {
        const [from, to] = [Date.parse(span.began), endOf(span, last)];
        const start = share(from);
        return { start, width: Math.max(0, share(to) - start), back: span.back, open: !span.ended };
      }),
      told: spans.map((span) => words(span, rollout, last)).join(", ") || untimed(rollout, number),
    };
  });
}

function endOf(span: StepSpan, last: number): number {
  return span.ended ? Date.parse(span.ended) : last;
}

function words(span: StepSpan, rollout: Rollout, last: number): string {
  const verb = span.back ? "undone" : "made";
  const took = (endOf(span, last) - Date.parse(span.began)) / 1000;
  if (!span.ended) {
    return rollout.phase === "Progressing" ? `for ${duration(took)} so far` : "not completed";
  }
  return took < 0 ? `${verb}, the clock was set back meanwhile` : `${verb} in ${duration(took)}`;
}

function untimed(rollout: Rollout, number: number): string {
  if (number > rollout.step) return rollout.phase === "Progressing" ? "to come" : "not made";
  return rollout.turning_back ? "times are not recorded" : "made, times are not recorded";
}
