import type { ShownPlan } from "../api/optimizer-api";
import type { Move, Plan, PlanRequest } from "../api/wire";

/** What a plan does to workloads, the worst first; a first placement is no move. */
export const ACTIONS: Record<Move["action"], string> = {
  stops: "stop",
  shrinks: "lose places",
  waits: "still have no place",
  moves: "move",
  starts: "placed for the first time",
  stays: "stay",
};

/** How many workloads have each action, in the order of `ACTIONS`. */
export function countsByAction(moves: Move[]): Record<Move["action"], number> {
  const counts = { stops: 0, shrinks: 0, waits: 0, moves: 0, starts: 0, stays: 0 };
  for (const { action } of moves) counts[action] += 1;
  return counts;
}

/** Whether another place, or none, is what a workload gets. */
export function changes(move: Move): boolean {
  return move.action !== "stays" && move.action !== "waits";
}

/** A number now and in the plan. */
export interface Change {
  before: number;
  after: number;
}

/** Sums of each raw score over all places, now and in the plan. */
export function scoreSums(moves: Move[]): Map<string, Change> {
  const sums = new Map<string, Change>();
  for (const move of moves) {
    for (const side of ["before", "after"] as const) {
      for (const { scores } of move[side]) {
        for (const [name, value] of Object.entries(scores)) {
          const sum = sums.get(name) ?? { before: 0, after: 0 };
          sums.set(name, { ...sum, [side]: sum[side] + value });
        }
      }
    }
  }
  return sums;
}

/**
 * What the places of each workload are worth under the plan's objective, now and in the plan. Null where
 * raw scores and weights do not explain the objective value, such as with costs of changes or trust: then
 * what runs now has no value that could be compared.
 */
export function workloadValues(plan: Plan, terms: Term[]): Map<string, Change> | null {
  const known = [...scoreSums(plan.moves).keys()].every((name) => termOf(terms, name));
  if (!known || terms.length === 0) return null;
  const values = new Map<string, Change>();
  let total = 0;
  for (const { workload, before, after } of plan.moves) {
    const value = { before: valueOf(before, terms), after: valueOf(after, terms) };
    values.set(workload, value);
    total += value.after;
  }
  const near = Math.max(0.01, 1e-6 * Math.abs(plan.objective_value));
  return Math.abs(total - plan.objective_value) <= near ? values : null;
}

/** What the places that run now are worth under the plan's objective; null: that is not known. */
export function valueNow(plan: ShownPlan): number | null {
  const values = workloadValues(plan, termsOf(plan.request));
  return values && [...values.values()].reduce((sum, { before }) => sum + before, 0);
}

/** A score in an objective. */
interface Term {
  addonPlacementScore: string;
  weight?: number;
  invert?: boolean;
  minimum?: number | null;
  maximum?: number | null;
}

/** The scores of a request's objective. */
export function termsOf(request: PlanRequest | null): Term[] {
  if (!request) return [];
  return [request.preference as Term, ...((request.objectives as Term[] | undefined) ?? [])];
}

/** Between which ends each score counts of which less is better. */
export function inversions(request: PlanRequest | null): string[] {
  return termsOf(request)
    .filter((term) => term.invert && term.weight !== 0 && term.minimum != null)
    .map(
      ({ addonPlacementScore: name, minimum, maximum }) =>
        `Lower values of ${name} are better: ${minimum} counts as 100, and ${maximum} as 0.`,
    );
}

/** The term of a score as moves name it: the name, and what the request states of its entries. */
export function termOf(terms: Term[], key: string): Term | undefined {
  const named = terms.filter((item) => `${key} `.startsWith(`${item.addonPlacementScore} `));
  return named.length === 1 ? named[0] : undefined;
}

function valueOf(places: Move["after"], terms: Term[]): number {
  let sum = 0;
  for (const { scores } of places) {
    for (const [name, score] of Object.entries(scores)) {
      const term = termOf(terms, name);
      if (term) sum += (term.weight ?? 1) * scaled(score, term);
    }
  }
  return sum;
}

function scaled(score: number, { invert, minimum, maximum }: Term): number {
  if (minimum == null || maximum == null) return invert ? -score : score;
  const share = (Math.min(maximum, Math.max(minimum, score)) - minimum) / (maximum - minimum);
  return 100 * (invert ? 1 - share : share);
}

/** The most that each score may sum up to, where the request limits it over the whole fleet. */
export function budgets(request: PlanRequest | null): Map<string, number> {
  const limits = (request?.limits ?? []) as {
    maximum: number;
    score?: Term | null;
    clusterSelector?: string;
    per?: string;
  }[];
  const whole = limits.filter((item) => item.score && !item.clusterSelector && !item.per);
  return new Map(whole.map((item) => [item.score!.addonPlacementScore, item.maximum]));
}

/** How sure it is that no plan is better. */
export function verdict({ status, gap }: Pick<ShownPlan, "status" | "gap">): string {
  if (status === "Optimal") return "Proven best";
  if (status === "Infeasible") return "No planned workload has a place";
  if (status === "NotSolved") return "Nothing was found within the limits";
  return gap === null
    ? "The best that was found, not proven best"
    : `At most ${+(100 * gap).toPrecision(2)} % below the best`;
}
