import { useMemo, useState } from "preact/hooks";
import type { Wish } from "../api/optimizer-api";
import type { Fleet } from "../api/wire";
import { commandOf } from "../parts/command";
import { go, useAddress } from "../parts/use-address";
import { firstWish } from "./what-if";

/** The wish as parts of the address, such as `weights=performance:2,power:1` and `lost=worker02`. */
export function wishParts(wish: Wish): Record<string, string> {
  return {
    weights: pairsIn(Object.entries(wish.objective)) || "none",
    budgets: pairsIn(Object.entries(wish.budget)),
    lost: wish.lose.map(escaped).join(),
    drained: wish.drain.map(escaped).join(),
    added: pairsIn(wish.add.map(({ name, like }) => [name, like])),
    how: [wish.prove && "prove", wish.stepwise && "stepwise"].filter(Boolean).join(),
  };
}

export interface Wished {
  wish: Wish;
  /** Whether the address says any of it. */
  asked: boolean;
  change: (wish: Wish) => void;
}

/** What is wished, as the address says, so that a colleague's page asks for the same plan. */
export function useWish(fleet: Fleet): Wished {
  const [first] = useState(() => firstWish(fleet));
  const names = ["weights", "budgets", "lost", "drained", "added", "how"] as const;
  const [weights, budgets, lost, drained, added, how] = names.map((name) => useAddress(name)[0]);
  return useMemo(() => {
    const wish: Wish = {
      objective: weights ? numbersIn(weights) : first.objective,
      budget: numbersIn(budgets),
      lose: itemsIn(lost).map(named),
      drain: itemsIn(drained).map(named),
      add: itemsIn(added).map((item) => ({ name: head(item), like: tail(item) })),
      prove: itemsIn(how).includes("prove"),
      stepwise: itemsIn(how).includes("stepwise"),
    };
    const asked = [weights, budgets, lost, drained, added, how].some(Boolean);
    return { wish, asked, change: (next: Wish) => go(wishParts(next), true) };
  }, [first, weights, budgets, lost, drained, added, how]);
}

/** The command that applies the plan of a wish; null where it takes a file to say the wish. */
export function applying(namespace: string, wish: Wish): string | null {
  const { objective, budget, lose, drain, add, prove, stepwise } = wish;
  const weights = Object.entries(objective);
  const pretends = lose.length + drain.length + add.length > 0;
  if (pretends || Object.keys(budget).length > 0 || weights.length === 0) return null;
  const terms = weights.map(([score, weight]) => commandOf`${score}:${String(weight)}`);
  const start = commandOf`dsf optimize -n ${namespace} --objective `;
  if (start === null || terms.includes(null)) return null;
  return start + terms.join() + (prove ? " --gap 0" : "") + (stepwise ? " --rollout Stepwise" : "");
}

function pairsIn(pairs: [string, string | number][]): string {
  return pairs.map(([name, said]) => `${escaped(name)}:${escaped(String(said))}`).join();
}

function itemsIn(text = ""): string[] {
  return text.split(",").filter((item) => item && item !== "none");
}

function numbersIn(text = ""): Record<string, number> {
  return Object.fromEntries(itemsIn(text).map((item) => [head(item), Number(tail(item))]));
}

function head(pair: string): string {
  return named(pair.split(":")[0] ?? "");
}

function tail(pair: string): string {
  return named(pair.split(":").slice(1).join(":"));
}

/** A name without what separates names in the address. */
function escaped(name: string): string {
  return name.replace(/[%,:]/g, (one) => `%${one.charCodeAt(0).toString(16)}`);
}

function named(text: string): string {
  return text.replace(/%(25|2c|3a)/g, (_, code) => String.fromCharCode(parseInt(code, 16)));
}
