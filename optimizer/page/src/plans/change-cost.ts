import {
  type OptimizerApi,
  problemOf,
  type ShownPlan,
  type Tell,
  type Wish,
} from "../api/optimizer-api";
import type { Fleet } from "../api/wire";
import { chosenScore } from "../fleet/score-rows";
import { counted, figure, listed } from "../parts/sentences";
import { countsByAction, valueNow } from "./plan-figures";

/** A plan, the wish that it answers, and the weights that it counts. */
export interface Answered {
  wish: Wish;
  plan: ShownPlan;
  weights: Record<string, number>;
  /** When it was asked for. */
  time: string;
}

/** What both doors say where no objective is in force; a chat passes on words alone. */
const NO_OBJECTIVE = "name the score to maximise";

/** The plan of a wish; without an objective by the one in force, or else by the first score. */
export async function answered(
  api: OptimizerApi,
  fleet: Fleet,
  wish: Wish,
  optimization: string | undefined,
  tell: Tell,
  signal?: AbortSignal,
): Promise<Answered> {
  const time = new Date().toISOString();
  const asked = { ...wish, ...(optimization && { optimization }) };
  try {
    const plan = await api.plan(fleet.namespace, asked, tell, signal);
    const taken = Object.entries(plan.objective_from?.scores ?? wish.objective);
    // Behind the name stands what a request states of the entries of a score.
    const weights = Object.fromEntries(taken.map(([key, each]) => [key.split(" ")[0], each]));
    return { wish, plan, weights, time };
  } catch (thrown) {
    const first = chosenScore(fleet, "")?.name;
    if (!first || !problemOf(thrown).detail.includes(NO_OBJECTIVE)) throw thrown;
    const weights = { [first]: 1 };
    const plan = await api.plan(fleet.namespace, { ...asked, objective: weights }, tell, signal);
    return { wish, plan, weights, time };
  }
}

/** Whether a wish pretends other clusters or states budgets: a plan without that has the same objective. */
export function changesClusters({ lose, drain, add, budget }: Wish): boolean {
  return lose.length + drain.length + add.length + Object.keys(budget).length > 0;
}

/** The wish for the best plan without that, by the same objective. */
export function withoutChange({ wish, plan, weights }: Answered): Wish {
  const objective = plan.objective_from ? {} : weights;
  return { ...wish, objective, lose: [], drain: [], add: [], budget: {}, stepwise: false };
}

/** The value now and after a change, with what each takes or adds; the best plan without it is the yardstick. */
export function costTold({ wish, plan }: Answered, { plan: without }: Answered): string {
  const [was, is] = [without, plan].map((one) => countsByAction(one.moves).moves);
  const beside = [
    more(without.unplaced.length, plan.unplaced.length, "workload", " without a place"),
    more(was!, is!, "move", ""),
  ];
  return `${valueTold(wish, plan, without)} Beside the best plan without that change: ${beside.join(", ")}.${limitsTold(without, plan)}`;
}

/** What a plan tells of a changed fleet, with what runs now as the plan without the change tells it. */
export function withNow(plan: ShownPlan, { plan: without }: Answered): ShownPlan {
  const before = new Map(without.moves.map((move) => [move.workload, move.before]));
  const moves = plan.moves.map((move) => ({
    ...move,
    before: before.get(move.workload) ?? move.before,
  }));
  return { ...plan, moves };
}

/** Cluster names that one sentence has. */
const NAMED = 3;

function changeTold({ lose, drain, add, budget }: Wish): string {
  const [added, limited] = [add.map(({ name }) => name), Object.keys(budget)];
  const told = [
    lose.length && `losing ${listed(lose, NAMED)}`,
    drain.length && `draining ${listed(drain, NAMED)}`,
    add.length && `adding ${listed(added, NAMED)}`,
    limited.length && `the budget of ${listed(limited, NAMED)}`,
  ].filter(Boolean);
  return told.join(" and ");
}

/** `Value 100 now, 120 after: 10 lost by losing c1, 30 gained by moves …`, of which the parts are the whole. */
function valueTold(wish: Wish, plan: ShownPlan, without: ShownPlan): string {
  const part = (amount: number, what: string) =>
    `${figure(Math.abs(amount))} ${amount > 0 ? "gained" : "lost"} by ${what}`;
  const [after, best] = [cents(plan.objective_value), cents(without.objective_value)];
  const itself = part(after - best, changeTold(wish));
  const now = valueNow(without);
  // A rollout makes unknown what runs now.
  if (now === null) return `Value ${figure(after)} after: ${itself}.`;
  const gain = cents(best - cents(now));
  const moves = gain ? `, ${part(gain, "moves that pay in any case")}` : "";
  return `Value ${figure(now)} now, ${figure(after)} after: ${itself}${moves}.`;
}

function cents(value: number): number {
  return Math.round(value * 100) / 100;
}

/** Between what the cost lies where a plan is not proven best. */
function limitsTold(without: ShownPlan, plan: ShownPlan): string {
  const least = without.objective_value - (plan.bound ?? Infinity);
  const most = (without.bound ?? Infinity) - plan.objective_value;
  if (!(most - least >= 0.01)) return "";
  if (!Number.isFinite(most - least)) return " These plans are not proven best.";
  return ` These plans are not proven best: ${figure(least)} to ${figure(most)} is lost by it.`;
}

/** `2 more workloads without a place (4, then 6)`. */
function more(was: number, is: number, noun: string, what: string): string {
  if (was === is) return `no more ${noun}s${what} (${is})`;
  const amount = Math.abs(is - was);
  const how = is > was ? "more" : "fewer";
  return `${counted(amount, `${how} ${noun}`)}${what} (${was}, then ${is})`;
}
