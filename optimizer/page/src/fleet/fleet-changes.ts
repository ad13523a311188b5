import type { Fleet, FleetCluster } from "../api/wire";

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
    scores: new Map(
      after.scores.map((score) => {
        const earlier = before.scores.find((item) => item.name === score.name);
        return [score.name, differing(rows(before, earlier), rows(after, score), (row) => row)];
      }),
    ),
    number,
  };
}

function told(cluster: FleetCluster) {
  const { eligible, health, enforced, running, gpus, occupied } = cluster as FleetCluster & {
    gpus?: unknown;
    occupied?: unknown;
  };
  const here = running.map(({ workload, state }) => [workload, state]);
  return { eligible, health, enforced, here, gpus, occupied };
}

/** The values of a score by cluster, each with its column. */
function rows(fleet: Fleet, score: Fleet["scores"][number] | undefined) {
  return fleet.clusters.map(({ name }, row) => ({
    name,
    values: (score?.columns ?? []).flatMap(({ app, device, entry, values }) =>
      (values[row] ?? null) === null ? [] : [[app, device, entry, values[row]]],
    ),
  }));
}

function differing<T extends { name: string }>(
  before: readonly T[],
  after: readonly T[],
  part: (item: T) => unknown,
): Set<string> {
  const known = new Map(before.map((item) => [item.name, JSON.stringify(part(item))]));
  const changed = after.filter((item) => known.get(item.name) !== JSON.stringify(part(item)));
  return new Set(changed.map((item) => item.name));
}
