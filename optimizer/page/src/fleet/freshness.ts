import type { Fleet } from "../api/wire";
import type { Part } from "../parts/stacked-bar";
import { SKEW } from "../parts/times";

/** By the most seconds of an age. */
const AGES: [number, string, Part["tone"]][] = [
  [300, "under 5 min", "good"],
  [3600, "under 1 h", "fair"],
  [Infinity, "older", "warning"],
];

export interface Freshness {
  /** Scores of clusters by their age, the youngest first. */
  parts: Part[];
  oldest: { score: string; cluster: string; age: number } | null;
  /** How many were written after the hub was read, so that somebody's clock is wrong. */
  ahead: number;
}

/** How old scores are, by the time at which the hub was read. */
export function freshness(fleet: Fleet): Freshness {
  const now = Date.parse(fleet.observed_at) / 1000;
  const counts = new Map<string, number>();
  const add = (name: string) => counts.set(name, (counts.get(name) ?? 0) + 1);
  let oldest: Freshness["oldest"] = null;
  let ahead = 0;
  for (const score of fleet.scores) {
    const expired = new Set(score.expired);
    fleet.clusters.forEach((cluster, row) => {
      const written = score.written[row] ?? null;
      if ((score.mean[row] ?? null) === null && written === null) return;
      const age = written === null ? null : now - written;
      if (age !== null && age > (oldest?.age ?? 0)) {
        oldest = { score: score.display_name || score.name, cluster: cluster.name, age };
      }
      if (age !== null && age < -SKEW) ahead += 1;
      if (expired.has(row)) add("expired");
      else add(age === null ? "of unknown age" : AGES.find(([most]) => age < most)![1]);
    });
  }
  const named: [string, Part["tone"]][] = [
    ...AGES.map(([, name, tone]): [string, Part["tone"]] => [name, tone]),
    ["expired", "broken"],
    ["of unknown age", "unknown"],
  ];
  const parts = named.map(([name, tone]) => ({ name, tone, amount: counts.get(name) ?? 0 }));
  return { parts: parts.filter(({ amount }) => amount > 0), oldest, ahead };
}
