import type { Finding, Fleet, FleetCluster, FleetScore } from "../api/wire";
import type { GpuGroup, GpuLayout, Occupied } from "../api/wire";
import { byNaturalOrder } from "../parts/natural-order";
import { bestFirst } from "./score-colour";

/** A GPU as it is drawn. `workloads` are those of the layout's slices: null is free, "" are others. */
export interface DrawnGpu {
  model: string;
  known: GpuGroup["known"];
  layout: GpuLayout;
  workloads: (string | null)[];
}

export type ClusterState = "eligible" | "finding" | "expired" | "obstacle" | "lost";

/** A managed cluster as it is drawn. */
export interface DrawnCluster {
  name: string;
  gpus: DrawnGpu[];
  /** Slices of all GPUs, and those in use; also of GPUs that are not drawn. */
  slices: number;
  used: number;
  /** GPUs beyond those that are drawn. */
  omitted: number;
  /** Workloads with so many slices that no GPU is known to have free. */
  elsewhere: Occupied[];
  state: ClusterState;
  /** Why it is in that state; empty where nothing is wrong. */
  told: string;
  /** Its inventory is current, so sums of GPUs have what it has. */
  inventoried: boolean;
  labels: Record<string, string>;
  policies: string[];
  /** The chosen score, by device; empty where there is none. */
  scores: Map<string, number>;
  /** The best of `scores` on a device that the cluster has, or of all; null: none. */
  score: number | null;
}

/** GPUs of a cluster that are drawn at most. */
const MAX_GPUS = 512;

/** The score by which a fleet is coloured and sorted. */
export interface ChosenScore {
  score: FleetScore;
  /** Empty: of every app, the best. */
  app: string;
}

/** The clusters of a fleet as they are drawn, in its order. */
export function drawnFleet(fleet: Fleet, chosen: ChosenScore | null): DrawnCluster[] {
  const found = wrong(fleet, "cluster");
  const stuck = wrong(fleet, "workload");
  const expired = new Set(chosen?.score.expired);
  const lapsed = new Set(fleet.capacity?.expired);
  const columns = chosen?.score.columns.filter(
    (column) => !chosen.app || column.app === chosen.app || !column.app,
  );
  return fleet.clusters.map((cluster, row) => {
    const gpus = drawnGpus(fleet.layouts, cluster.gpus, cluster.occupied);
    const scores = new Map<string, number>();
    for (const column of columns ?? []) {
      const value = column.values[row] ?? null;
      const known = scores.get(column.device) ?? null;
      if (value === null || !chosen) continue;
      if (bestFirst(chosen.score, value, known) < 0) scores.set(column.device, value);
    }
    return {
      name: cluster.name,
      ...gpus,
      ...stateOf(cluster, found.get(cluster.name) ?? "", stuck, expired.has(row)),
      inventoried: (fleet.capacity?.observed[row] ?? null) !== null && !lapsed.has(row),
      labels: cluster.labels,
      policies: cluster.enforced.map((item) => item.policy).sort(byNaturalOrder),
      scores,
      score: chosen ? bestScore(chosen.score, scores, gpus.gpus) : null,
    };
  });
}

/**
 * GPUs with their workloads. Nobody reports which instance a workload has, so workloads get the slices of
 * their device in the order of the layouts.
 */
function drawnGpus(
  layouts: GpuLayout[],
  groups: GpuGroup[],
  occupied: Occupied[],
): Pick<DrawnCluster, "gpus" | "slices" | "used" | "omitted" | "elsewhere"> {
  const gpus: DrawnGpu[] = [];
  let [slices, omitted, used] = [0, 0, 0];
  for (const { model, known, count, layout: index } of groups) {
    const layout = layouts[index];
    if (!layout) continue;
    slices += count * layout.slices.length;
    const drawn = Math.min(count, MAX_GPUS - gpus.length);
    omitted += count - drawn;
    for (let number = 0; number < drawn; number += 1) {
      gpus.push({ model, known, layout, workloads: layout.slices.map(() => null) });
    }
  }
  // Where the search for the next slice of a device goes on. Lists of all slices would cost a large fleet more.
  const reached = new Map<string, { gpu: number; slice: number }>();
  const elsewhere: Occupied[] = [];
  const ordered = [...occupied].sort((one, other) => byNaturalOrder(one.workload, other.workload));
  for (const item of ordered) {
    const at = reached.get(item.device) ?? { gpu: 0, slice: 0 };
    reached.set(item.device, at);
    let left = Math.ceil(item.amount);
    used += left;
    for (; left > 0 && at.gpu < gpus.length; at.gpu += 1, at.slice = 0) {
      const { layout, workloads } = gpus[at.gpu]!;
      for (; left > 0 && at.slice < workloads.length; at.slice += 1) {
        if (layout.slices[at.slice]!.device !== item.device) continue;
        workloads[at.slice] = item.workload;
        left -= 1;
      }
      if (left === 0) break;
    }
    if (left > 0) elsewhere.push({ ...item, amount: left });
  }
  return { gpus, slices, used: Math.min(used, slices), omitted, elsewhere };
}

/** How a GPU is divided, such as `2 × 3g.40gb`; empty: that is not known. */
export function divisionOf({ slices }: GpuLayout): string {
  const devices = slices.map(({ device }) => (device === "all" ? "whole" : device));
  return [...countsOf(devices)].map(times).join(", ");
}

/** How often each text is there. */
export function countsOf(texts: string[]): Map<string, number> {
  const found = new Map<string, number>();
  for (const text of texts) found.set(text, (found.get(text) ?? 0) + 1);
  return found;
}

/** `2 × text`, or the text alone. */
export function times([text, count]: [string, number]): string {
  return count > 1 ? `${count} × ${text}` : text;
}

/** What is wrong, by the name of the object; not what OCM is at work on. */
function wrong({ findings }: Fleet, stage: Finding["stage"]): Map<string, string> {
  const found = findings.filter((item) => item.stage === stage && item.severity !== "info");
  return new Map(
    found.flatMap((item) => item.names.map((name) => [name, `${item.reason}: ${item.message}`])),
  );
}

function stateOf(
  cluster: FleetCluster,
  found: string,
  stuck: Map<string, string>,
  expired: boolean,
): Pick<DrawnCluster, "state" | "told"> {
  const [obstacle] = cluster.obstacles;
  if (obstacle) {
    const state = obstacle.reason === "ClusterLost" ? "lost" : "obstacle";
    return { state, told: `${obstacle.reason}: ${obstacle.message}` };
  }
  if (!cluster.eligible) return { state: "obstacle", told: "OCM does not select it" };
  const late = cluster.running.find((item) => item.state !== "Landed" && stuck.has(item.workload));
  if (found || late) {
    return { state: "finding", told: found || `${late?.workload}: ${late?.message}` };
  }
  return expired
    ? { state: "expired", told: "its score has expired: placement does not use it" }
    : { state: "eligible", told: "" };
}

function bestScore(
  score: FleetScore,
  values: Map<string, number>,
  gpus: DrawnGpu[],
): number | null {
  let [here, any]: [number | null, number | null] = [null, null];
  for (const [device, value] of values) {
    if (bestFirst(score, value, any) < 0) any = value;
    const usable = !device || gpus.some((gpu) => supplies(gpu.layout, device));
    if (usable && bestFirst(score, value, here) < 0) here = value;
  }
  return here ?? any;
}

function supplies({ slices }: GpuLayout, device: string): boolean {
  return slices.some((slice) => slice.device === device);
}
