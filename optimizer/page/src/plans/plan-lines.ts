import type { PlanSummary } from "../api/wire";
import type { Line, Point } from "../time/curve-lines";

/** The objective by revision, broken between plans of different requests. */
export function valueLine(plans: PlanSummary[]): Line {
  const ordered = byRevision(plans);
  const points = ordered.flatMap((plan, at): Point[] => {
    const point: Point = [plan.revision, plan.objective];
    const before = ordered[at - 1];
    const broken = before && before.request_digest !== plan.request_digest;
    return broken ? [[plan.revision - 0.5, null], point] : [point];
  });
  return { name: "value", points };
}

/** Moves, first placements and workloads without a place by revision; null: not recorded. */
export function changeLines(plans: PlanSummary[]): Line[] {
  const ordered = byRevision(plans);
  const line = (name: string, read: (plan: PlanSummary) => number | null): Line => ({
    name,
    points: ordered.map((plan) => [plan.revision, read(plan)]),
  });
  return [
    line("moves", (plan) => plan.moves),
    line("first placements", (plan) => plan.first_placements),
    line("unplaced", (plan) => plan.unplaced_workloads),
  ];
}

function byRevision(plans: PlanSummary[]): PlanSummary[] {
  return [...plans].sort((one, other) => one.revision - other.revision);
}
