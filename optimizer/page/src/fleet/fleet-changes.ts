import type { Fleet, FleetCluster, ScoreColumn } from "../api/wire";

/** What differs between two reads of the fleet, by name. */
export interface FleetChanges {
  /** Clusters whose state, policies, workloads or GPUs changed. */
  clusters: ReadonlySet<string>;
  workloads: ReadonlySet<string>;
  /** By score, the clusters that it has another value of. */
  scores: ReadonlyMap<string, ReadonlySet<string>>;
  /** Grows with each change, so that the same name is highlighted again. */
  number: number;
}

export const NO_CHANGES: FleetChanges = {
  ...{ clusters: new Set<string>(), workloads: new Set<string>() },
  ...{ scores: new Map<string, Set<string>>(), number: 0 },
};

/** What changed; times and sentences do not count, because they change all the time. */
export function changesBetween(before: Fleet, after: Fleet, number: number): FleetChanges {
  return {
    clusters: differing(before.clusters, after.clusters, told),
    workloads: differing(before.workloads, after.workloads, ({ places }) => places),
    scores: new Map(after.scores.map(({ name }) => [name, rescored(before, after, name)])),
    number,
  };
}

function told({ eligible, health, enforced, running, gpus, occupied }: FleetCluster) {
  const here = running.map(({ workload, state }) => [workload, state]);
  return { eligible, health, enforced, here, gpus, occupied };
}

/** Clusters with another value in some column of a score. A fleet has too many values to write them all out. */
function rescored(before: Fleet, after: Fleet, name: string): Set<string> {
  const [was, is] = [before, after].map((fleet) => {
    const columns = fleet.scores.find((item) => item.name === name)?.columns ?? [];
    return new Map(columns.map((item) => [[item.entry, item.app, item.device].join(";"), item]));
  }) as [Columns, Columns];
  const rows = new Map(before.clusters.map((cluster, row) => [cluster.name, row]));
  const columns = [...new Set([...was.keys(), ...is.keys()])];
  const changed = after.clusters.filter((cluster, row) => {
    const earlier = rows.get(cluster.name) ?? -1;
    return columns.some(
      (key) => (was.get(key)?.values[earlier] ?? null) !== (is.get(key)?.values[row] ?? null),
    );
  });
  return new Set(changed.map((cluster) => cluster.name));
}

type Columns = Map<string, ScoreColumn>;

function differing<T extends { name: string }>(
  before: readonly T[],
  after: readonly T[],
  part: (item: T) => unknown,
): Set<string> {
  const known = new Map(before.map((item) => [item.name, item]));
  const changed = after.filter((item) => {
    const earlier = known.get(item.name);
    return !earlier || !same(part(earlier), part(item));
  });
  return new Set(changed.map((item) => item.name));
}

/** Whether two values of JSON are equal. Texts of them would cost a large fleet most of an update. */
function same(one: unknown, other: unknown): boolean {
  if (one === other) return true;
  if (typeof one !== "object" || typeof other !== "object" || !one || !other) return false;
  const keys = Object.keys(one);
  if (keys.length !== Object.keys(other).length) return false;
  return keys.every((key) => same(one[key as never], other[key as never]));
}
