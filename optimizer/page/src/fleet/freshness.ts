import type { Fleet, FleetScore } from "../api/wire";
import { listed } from "../parts/sentences";
import type { Part } from "../parts/stacked-bar";
import { duration, SKEW } from "../parts/times";

/** By the most seconds of an age. */
const AGES: [number, string, Part["tone"]][] = [
  [300, "under 5 min", "good"],
  [3600, "under 1 h", "fair"],
  [Infinity, "older", "warning"],
];

/** The part of its validity after which a score is late: agents renew it before two thirds of it are over. */
const LATE = 5 / 6;

/** How old a score of a cluster is. */
export interface Age {
  /** Seconds since it was written; null: the hub does not say. */
  age: number | null;
  /** Seconds until it expires, negative since it has; null: it never does. */
  left: number | null;
  expired: boolean;
  /** It has expired, or its agent has not renewed it in time. */
  late: boolean;
}

/** The age of a score on a cluster, by the time at which the hub was read; null: it has no value. */
export function ageOf(fleet: Fleet, score: FleetScore, row: number, expired: boolean): Age | null {
  const now = Date.parse(fleet.observed_at) / 1000;
  const written = score.written[row] ?? null;
  const until = score.valid_until[row] ?? null;
  if (!expired && (score.mean[row] ?? null) === null) return null;
  const age = written === null ? null : now - written;
  const slow = age !== null && until !== null && age > LATE * (until - written!);
  return { age, left: until === null ? null : until - now, expired, late: expired || slow };
}

/** `5m old, expired 3m ago`. */
export function ageTold({ age, left, expired }: Age): string {
  const valid =
    left === null ? "" : expired ? `expired ${duration(left)} ago` : `valid for ${duration(left)}`;
  const old = age === null ? "age unknown" : `${duration(Math.max(0, age))} old`;
  return [old, valid || (expired && "expired")].filter(Boolean).join(", ");
}

/** Clusters on which the same scores are late, the worst first. */
export interface Late {
  /** As people know them, and the name of the first. */
  scores: string[];
  score: string;
  clusters: string[];
  worst: Age;
}

export interface Freshness {
  /** Scores of clusters by their age, the youngest first. */
  parts: Part[];
  late: Late[];
  oldest: (Age & { score: string; cluster: string }) | null;
  /** How many were written after the hub was read, so that somebody's clock is wrong. */
  ahead: number;
}

/** How old scores are. */
export function freshness(fleet: Fleet): Freshness {
  const counts = new Map<string, number>();
  const add = (name: string) => counts.set(name, (counts.get(name) ?? 0) + 1);
  const late = new Map<string, Late>();
  let oldest: Freshness["oldest"] = null;
  let ahead = 0;
  for (const score of fleet.scores) {
    const expired = new Set(score.expired);
    const name = score.display_name || score.name;
    fleet.clusters.forEach(({ name: cluster }, row) => {
      const found = ageOf(fleet, score, row, expired.has(row));
      if (!found) return;
      const { age } = found;
      if (age !== null && age > (oldest?.age ?? 0)) oldest = { ...found, score: name, cluster };
      if (age !== null && age < -SKEW) ahead += 1;
      if (found.expired) add("expired");
      else add(age === null ? "of unknown age" : AGES.find(([most]) => age < most)![1]);
      if (!found.late) return;
      const known = late.get(cluster) ?? {
        ...{ scores: [], score: score.name, clusters: [cluster], worst: found },
      };
      known.scores.push(name);
      if (worstFirst(found, known.worst) < 0) known.worst = found;
      late.set(cluster, known);
    });
  }
  const named: [string, Part["tone"]][] = [
    ...AGES.map(([, name, tone]): [string, Part["tone"]] => [name, tone]),
    ["expired", "broken"],
    ["of unknown age", "unknown"],
  ];
  const parts = named.map(([name, tone]) => ({ name, tone, amount: counts.get(name) ?? 0 }));
  const shown = parts.filter(({ amount }) => amount > 0);
  return { parts: shown, late: together([...late.values()]), oldest, ahead };
}

/** Compares ages: first what has expired for longest, then what expires next; without a score last. */
export function worstFirst(one: Age | null, other: Age | null): number {
  const rank = (age: Age | null) => {
    if (age?.expired) return Math.min(0, age.left ?? 0) - FAR;
    return age ? Math.min(age.left ?? FAR, FAR) : 2 * FAR;
  };
  return rank(one) - rank(other);
}

/** Seconds that are more than any age. */
const FAR = 1e12;

/** Clusters with the same late scores as one: all agents of a scorer may be late at once. */
function together(clusters: Late[]): Late[] {
  const found = new Map<string, Late>();
  for (const item of clusters.sort((one, other) => worstFirst(one.worst, other.worst))) {
    const key = JSON.stringify(item.scores);
    const known = found.get(key);
    if (known) known.clusters.push(...item.clusters);
    else found.set(key, item);
  }
  return [...found.values()];
}

/** `5m old, expired 3m ago: Latency, Power`; of several clusters the worst is named. */
export function lateTold({ scores, clusters, worst }: Late): string {
  const where = clusters.length > 1 ? ` on ${clusters[0]}` : "";
  return `${ageTold(worst)}${where}: ${listed(scores, 4)}`;
}
