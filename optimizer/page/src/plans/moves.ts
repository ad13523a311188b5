import type { Assignment, Move, PlanRecord } from "../api/wire";
import { byNaturalOrder } from "../parts/natural-order";
import { ACTIONS, changes } from "./plan-figures";

/** A workload's places before and after, as texts such as `worker01 3g.48gb`. */
export interface ShownMove {
  workload: string;
  before: string[];
  after: string[];
  changed: boolean;
}

const WORST_FIRST = Object.keys(ACTIONS);

/** The moves of a plan as texts, the worst first. */
export function shownMoves(moves: Move[]): ShownMove[] {
  const rank = ({ action }: Move) => WORST_FIRST.indexOf(action);
  return [...moves]
    .sort((a, b) => rank(a) - rank(b) || byNaturalOrder(a.workload, b.workload))
    .map((move) => ({
      workload: move.workload,
      before: move.before.map(place),
      after: move.after.map(place),
      changed: changes(move),
    }));
}

/** What an applied plan did, compared with the one before it: a first place is no move. */
export interface AppliedMoves {
  moved: ShownMove[];
  /** Placed for the first time, or again after a time without a place. */
  started: ShownMove[];
  stopped: ShownMove[];
  stayed: ShownMove[];
}

export function movesBetween(before: PlanRecord | undefined, after: PlanRecord): AppliedMoves {
  const [from, to] = [placesOf(before?.assignments ?? []), placesOf(after.assignments)];
  const names = [...new Set([...from.keys(), ...to.keys()])].sort(byNaturalOrder);
  const found: AppliedMoves = { moved: [], started: [], stopped: [], stayed: [] };
  for (const workload of names) {
    const [earlier, later] = [from.get(workload) ?? [], to.get(workload) ?? []];
    const changed = String(earlier) !== String(later);
    const kind = !changed
      ? "stayed"
      : !earlier.length
        ? "started"
        : later.length
          ? "moved"
          : "stopped";
    found[kind].push({ workload, before: earlier, after: later, changed });
  }
  return found;
}

function placesOf(assignments: Assignment[]): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const item of assignments) {
    found.set(item.workload, [...(found.get(item.workload) ?? []), place(item)].sort());
  }
  return found;
}

function place(item: { cluster: string; device: string }): string {
  return [item.cluster, item.device].filter(Boolean).join(" ");
}
