import type { Assignment, FleetCluster, FleetWorkload } from "../api/wire";

/** A workload's clusters and devices before and after a plan. */
export interface Move {
  workload: string;
  before: string[];
  after: string[];
  changed: boolean;
}

/** A workload's places by its name, such as `worker01 3g.48gb`. */
export type Places = Map<string, string[]>;

/** Places as a plan or its record decided them. */
export function placesOf(assignments: Assignment[]): Places {
  const found: Places = new Map();
  for (const item of assignments) {
    const place = [item.cluster, item.device].filter(Boolean).join(" ");
    found.set(item.workload, [...(found.get(item.workload) ?? []), place]);
  }
  return found;
}

/** Each workload before and after, those that move first. */
export function moves(before: Places, after: Places): Move[] {
  const names = [...new Set([...before.keys(), ...after.keys()])].sort();
  const all = names.map((workload) => {
    const [from, to] = [before, after].map((places) => [...(places.get(workload) ?? [])].sort());
    return {
      workload,
      before: from ?? [],
      after: to ?? [],
      changed: String(clustersOf(from)) !== String(clustersOf(to)),
    };
  });
  return [...all.filter((move) => move.changed), ...all.filter((move) => !move.changed)];
}

/** Where the fleet's workloads are now; the hub does not tell their devices. */
export function placesNow(workloads: FleetWorkload[]): Places {
  return new Map(workloads.map((item) => [item.name, Object.keys(item.places)]));
}

/** Clusters whose enforced policies a plan changes: before and after by cluster. */
export function policyChanges(clusters: FleetCluster[], after: Record<string, string>) {
  return clusters
    .map((item) => ({
      cluster: item.name,
      before: item.enforced.map((one) => one.policy).join(", "),
      after: after[item.name] ?? "",
    }))
    .filter((item) => item.before !== item.after);
}

function clustersOf(places: string[] | undefined): string[] {
  return (places ?? []).map((place) => place.split(" ")[0] ?? "");
}
