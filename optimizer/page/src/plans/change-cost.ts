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
import { countsByAction, termsOf, workloadValues } from "./plan-figures";

/** A plan, the wish that it answers, and the weights that it counts. */
export interface Answered {
  wish: Wish;
  plan: ShownPlan;
  weights: Record<string, number>;
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
  const asked = { ...wish, ...(optimization && { optimization }) };
  try {
    const plan = await api.plan(fleet.namespace, asked, tell, signal);
    const taken = Object.entries(plan.objective_from?.scores ?? wish.objective);
    // Behind the name stands what a request states of the entries of a score.
    const weights = Object.fromEntries(taken.map(([key, each]) => [key.split(" ")[0], each]));
    return { wish, plan, weights };
  } catch (thrown) {
    const first = chosenScore(fleet, "")?.name;
    if (!first || !problemOf(thrown).detail.includes(NO_OBJECTIVE)) throw thrown;
    const weights = { [first]: 1 };
    const plan = await api.plan(fleet.namespace, { ...asked, objective: weights }, tell, signal);
    return { wish, plan, weights };
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

/** What a change itself costs: the best plan with it beside the best plan without it. */
export function costTold({ wish, plan }: Answered, { plan: without }: Answered): string {
  const [was, is] = [without, plan].map((one) => countsByAction(one.moves).moves);
  const told = [
    `${changeTold(wish)} ${valueTold(without, plan)} in value`,
    more(without.unplaced.length, plan.unplaced.length, "workload", " without a place"),
    more(was!, is!, "move", ""),
  ];
  const values = [without, plan].map((one) => figure(one.objective_value));
  return `${told.join(", ")}. The best plan is worth ${values[0]} without this change and ${values[1]} with it.${limitsTold(without, plan)}${gainTold(without)}`;
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
  const text = told.join(" and ");
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** `costs 12.5`. */
function valueTold(without: ShownPlan, plan: ShownPlan): string {
  const cost = without.objective_value - plan.objective_value;
  if (Math.abs(cost) < 0.005) return "costs nothing";
  return `${cost > 0 ? "costs" : "gains"} ${figure(Math.abs(cost))}`;
}

/** Between what the cost lies where a plan is not proven best. */
function limitsTold(without: ShownPlan, plan: ShownPlan): string {
  const least = without.objective_value - (plan.bound ?? Infinity);
  const most = (without.bound ?? Infinity) - plan.objective_value;
  if (!(most - least >= 0.01)) return "";
  if (!Number.isFinite(most - least)) return " They are not proven best.";
  return ` They are not proven best: it costs ${figure(least)} to ${figure(most)}.`;
}

/** `2 more workloads without a place (4, then 6)`. */
function more(was: number, is: number, noun: string, what: string): string {
  if (was === is) return `no more ${noun}s${what} (${is})`;
  const amount = Math.abs(is - was);
  const how = is > was ? "more" : "fewer";
  return `${counted(amount, `${how} ${noun}`)}${what} (${was}, then ${is})`;
}

/** What planning anew gains without any change, which is no effect of it; a rollout makes it unknown. */
function gainTold(without: ShownPlan): string {
  const values = workloadValues(without, termsOf(without.request));
  if (!values) return "";
  const now = [...values.values()].reduce((sum, { before }) => sum + before, 0);
  const gain = without.objective_value - now;
  if (gain < 0.005) return "";
  return ` Planning anew gains ${figure(gain)} over what runs without it: that is no effect of it.`;
}
