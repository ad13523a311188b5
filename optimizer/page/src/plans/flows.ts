import type { Move } from "../api/wire";

/** The group of a workload without a place. */
export const NOWHERE = "no place";

/** What kind of change a flow is. */
export type FlowKind = "stays" | "moves" | "starts" | "stops";

/** Places that go from one group of clusters to another one. */
export interface Flow {
  from: string;
  to: string;
  kind: FlowKind;
  places: number;
}

/** Groups that a diagram tells apart; those that change least are one. */
const MOST_GROUPS = 14;

/** The group of all groups that a diagram has no room for. */
const OTHERS = "all others";

/**
 * The places of a plan by group before and after, the largest flows first. `groups`: the group of each
 * cluster; one that it lacks is a group of its own.
 */
export function flowsOf(moves: Move[], groups: Map<string, string>): Flow[] {
  const flows = allFlows(moves, groups);
  const changed = new Map<string, number>();
  for (const { from, to, kind, places } of flows) {
    for (const name of [from, to]) {
      // What stays counts little: a reader wants to see what changes.
      const weight = kind === "stays" ? places / 1e6 : places;
      changed.set(name, (changed.get(name) ?? 0) + weight);
    }
  }
  changed.delete(NOWHERE);
  const most = [...changed].sort(([, one], [, other]) => other - one).slice(0, MOST_GROUPS);
  if (most.length === changed.size) return flows;
  const shown = new Set([NOWHERE, ...most.map(([name]) => name)]);
  const named = (cluster: string) => {
    const group = groups.get(cluster) ?? cluster;
    return shown.has(group) ? group : OTHERS;
  };
  const clusters = moves.flatMap((move) => [...move.before, ...move.after]);
  return allFlows(moves, new Map(clusters.map(({ cluster }) => [cluster, named(cluster)])));
}

function allFlows(moves: Move[], groups: Map<string, string>): Flow[] {
  const found = new Map<string, Flow>();
  for (const move of moves) {
    for (const [before, after] of pairs(move)) {
      const from = before === null ? NOWHERE : (groups.get(before) ?? before);
      const to = after === null ? NOWHERE : (groups.get(after) ?? after);
      const kind = kindOf(before, after);
      const key = JSON.stringify([from, to, kind]);
      const flow = found.get(key) ?? { from, to, kind, places: 0 };
      found.set(key, { ...flow, places: flow.places + 1 });
    }
  }
  return [...found.values()].sort((one, other) => other.places - one.places);
}

/** The clusters of each place before and after: places that stay are paired first, then the rest. */
export function pairs({ before, after }: Move): [string | null, string | null][] {
  const left = after.map((place) => place.cluster);
  const gone: string[] = [];
  const paired: [string | null, string | null][] = [];
  for (const { cluster } of before) {
    const same = left.indexOf(cluster);
    if (same < 0) gone.push(cluster);
    else paired.push([cluster, left.splice(same, 1)[0] ?? null]);
  }
  for (let at = 0; at < Math.max(gone.length, left.length); at += 1) {
    paired.push([gone[at] ?? null, left[at] ?? null]);
  }
  return paired;
}

function kindOf(before: string | null, after: string | null): FlowKind {
  if (before === null) return "starts";
  if (after === null) return "stops";
  return before === after ? "stays" : "moves";
}
