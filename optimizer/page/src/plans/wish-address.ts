import { useMemo } from "preact/hooks";
import type { Added, Wish } from "../api/optimizer-api";
import { commandOf } from "../parts/command";
import { go, useAddress } from "../parts/use-address";

/** The fleet as it is, by the objective in force. */
export const NOTHING_CHANGED: Wish = {
  ...{ objective: {}, lose: [], drain: [], add: [], budget: {}, prove: false, stepwise: false },
};

/** The wish as parts of the address, such as `weights=performance:2,power:1`, `lost=worker02` and `added=w3:worker01:8:H100-80GB`. */
export function wishParts(wish: Wish): Record<string, string> {
  return {
    weights: pairsIn(Object.entries(wish.objective)),
    budgets: pairsIn(Object.entries(wish.budget)),
    lost: wish.lose.map(escaped).join(),
    drained: wish.drain.map(escaped).join(),
    added: wish.add.map(addedIn).join(),
    how: [wish.prove && "prove", wish.stepwise && "stepwise"].filter(Boolean).join(),
    // Another plan is looked at whole.
    step: "",
  };
}

export interface Wished {
  wish: Wish;
  change: (wish: Wish) => void;
}

/** What is wished, as the address says, so that a colleague's page asks for the same plan. */
export function useWish(): Wished {
  const names = ["weights", "budgets", "lost", "drained", "added", "how"] as const;
  const [weights, budgets, lost, drained, added, how] = names.map((name) => useAddress(name)[0]);
  return useMemo(() => {
    const wish: Wish = {
      objective: numbersIn(weights),
      budget: numbersIn(budgets),
      lose: itemsIn(lost).map(named),
      drain: itemsIn(drained).map(named),
      add: itemsIn(added).map(addedOf),
      prove: itemsIn(how).includes("prove"),
      stepwise: itemsIn(how).includes("stepwise"),
    };
    return { wish, change: (next: Wish) => go(wishParts(next), true) };
  }, [weights, budgets, lost, drained, added, how]);
}

/** The command that applies exactly the plan of a wish; null where it takes a file to say the wish. */
export function applying(namespace: string, wish: Wish, digest: string): string | null {
  const { objective, optimization, budget, lose, drain, add, prove, stepwise } = wish;
  const weights = Object.entries(objective);
  const pretends = lose.length + drain.length + add.length > 0;
  if (pretends || Object.keys(budget).length > 0 || weights.length === 0) return null;
  const terms = weights.map(([score, weight]) => commandOf`${score}:${String(weight)}`);
  const start = commandOf`dsf optimize -n ${namespace} --expected-digest ${digest}`;
  if (start === null || terms.includes(null)) return null;
  const whose = optimization ? commandOf` --optimization ${optimization}` : "";
  const how = (prove ? " --gap 0" : "") + (stepwise ? " --rollout Stepwise" : "") + whose;
  return `${start} --objective ${terms.join()}${how}`;
}

function pairsIn(pairs: [string, string | number][]): string {
  return pairs.map(([name, said]) => `${escaped(name)}:${escaped(String(said))}`).join();
}

function addedIn({ name, like, gpus = [] }: Added): string {
  const told = gpus.flatMap(({ count, product }) => [String(count), product]);
  return [name, like, ...told].map(escaped).join(":");
}

function addedOf(item: string): Added {
  const [name = "", like = "", count, product = ""] = item.split(":").map(named);
  return { name, like, ...(count && { gpus: [{ product, count: Number(count) }] }) };
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
