import type { Fleet, GpuGroup, GpuLayout, Occupied, Plan, StepActions } from "../api/wire";
import { changes } from "./plan-figures";

/** The part of a plan that is drawn. */
export type DrawnPlan = Pick<
  Plan,
  "moves" | "enforcement_changes" | "rollout_steps" | "gpus_after" | "layouts"
>;

/** A workload on a cluster. */
export interface Replica {
  workload: string;
  cluster: string;
}

/** What one step changes; step 0 of a plan is what runs now, and changes nothing. */
export interface PlanStep {
  starts: Replica[];
  stops: Replica[];
  /** Clusters whose policies change. */
  divided: string[];
}

/** The steps of a plan in the order of its rollout; all at once is one step. */
export function planSteps(plan: DrawnPlan): PlanStep[] {
  const now = { starts: [], stops: [], divided: [] };
  const told = (plan.rollout_steps ?? []).map(stepOf).filter(changesSomething);
  if (told.length > 0) return [now, ...told];
  const whole = {
    starts: plan.moves.filter(changes).flatMap((move) => gone(move, "after", "before")),
    stops: plan.moves.filter(changes).flatMap((move) => gone(move, "before", "after")),
    divided: plan.enforcement_changes.map((item) => item.cluster),
  };
  return changesSomething(whole) ? [now, whole] : [now];
}

/** The clusters that a step changes. */
export function clustersOf({ starts, stops, divided }: PlanStep): string[] {
  return [...new Set([...divided, ...[...starts, ...stops].map((item) => item.cluster)])];
}

function stepOf({ start, stop, enforce, release }: StepActions): PlanStep {
  const divided = [...enforce, ...release].map((item) => item.cluster);
  return { starts: start, stops: stop, divided: [...new Set(divided)] };
}

function changesSomething({ starts, stops, divided }: PlanStep): boolean {
  return starts.length + stops.length + divided.length > 0;
}

/** Places of a workload on one side that the other side lacks. */
function gone(
  move: Plan["moves"][number],
  side: "before" | "after",
  other: "before" | "after",
): Replica[] {
  const there = new Set(move[other].map((place) => place.cluster));
  return move[side]
    .filter((place) => !there.has(place.cluster))
    .map(({ cluster }) => ({ workload: move.workload, cluster }));
}

/** The fleet as it is after the first steps of a plan. */
export function fleetAfter(fleet: Fleet, plan: DrawnPlan, steps: PlanStep[]): Fleet {
  const { layouts = [], gpus_after = [] } = plan;
  const told = new Map(gpus_after.map((item) => [item.cluster, item]));
  const planned = occupiedAfter(plan);
  const come = new Set(plan.moves.flatMap((move) => gone(move, "after", "before")).map(keyOf));
  const divided = new Set(steps.flatMap((step) => step.divided));
  const running = new Map<string, Map<string, boolean>>();
  const run = ({ cluster, workload }: Replica, runs: boolean) =>
    running.set(cluster, (running.get(cluster) ?? new Map()).set(workload, runs));
  for (const step of steps) {
    for (const item of step.stops) run(item, false);
    for (const item of step.starts) run(item, true);
  }
  const known = fleet.layouts;
  return {
    ...fleet,
    layouts: [...known, ...layouts],
    clusters: fleet.clusters.map((cluster) => {
      const anew = divided.has(cluster.name) ? told.get(cluster.name) : undefined;
      const runs = running.get(cluster.name);
      if (!anew && !runs) return cluster;
      const after = told.get(cluster.name)?.occupied ?? planned.get(cluster.name) ?? [];
      const stay = (anew ? after : cluster.occupied).filter(
        ({ workload }) =>
          !runs?.has(workload) && !(anew && come.has(keyOf({ workload, cluster: cluster.name }))),
      );
      const started = after.filter(({ workload }) => runs?.get(workload));
      return {
        ...cluster,
        gpus: anew
          ? anew.gpus.map((item) => ({ ...item, layout: item.layout + known.length }))
          : cluster.gpus,
        occupied: [...stay, ...started],
      };
    }),
  };
}

/** What each workload uses by the devices of its places, where the plan does not tell its GPUs. */
function occupiedAfter(plan: DrawnPlan): Map<string, Occupied[]> {
  const found = new Map<string, Occupied[]>();
  for (const { workload, after } of plan.moves) {
    for (const { cluster, device } of after) {
      found.set(cluster, [...(found.get(cluster) ?? []), { device, workload, amount: 1 }]);
    }
  }
  return found;
}

/** A text that names a workload on a cluster. */
export function keyOf({ workload, cluster }: Replica): string {
  return JSON.stringify([workload, cluster]);
}

/** GPUs of one model that are divided another way than now. */
export interface GpuChange {
  model: string;
  before: string;
  after: string;
  count: number;
  clusters: string[];
}

/** What changes on GPUs, by GPU: equal changes of all clusters together, the most GPUs first. */
export function gpuChanges(fleet: Fleet, plan: DrawnPlan): GpuChange[] {
  const found = new Map<string, GpuChange>();
  const clusters = new Map(fleet.clusters.map((item) => [item.name, item]));
  for (const { cluster, gpus } of plan.gpus_after ?? []) {
    const now = divisions(clusters.get(cluster)?.gpus ?? [], fleet.layouts);
    const planned = divisions(gpus, plan.layouts ?? []);
    for (const [model, after] of planned) {
      const before = now.get(model) ?? new Map<string, number>();
      const left = [...before].flatMap(([text, count]) => surplus(text, count, after.get(text)));
      const come = [...after].flatMap(([text, count]) => surplus(text, count, before.get(text)));
      come.forEach((text, at) => {
        const from = left[at] ?? "unknown";
        const key = JSON.stringify([model, from, text]);
        const known = found.get(key);
        const change = known ?? { model, before: from, after: text, count: 0, clusters: [] };
        change.count += 1;
        if (change.clusters.at(-1) !== cluster) change.clusters.push(cluster);
        found.set(key, change);
      });
    }
  }
  return [...found.values()].sort((one, other) => other.count - one.count);
}

function surplus(text: string, count: number, elsewhere = 0): string[] {
  return Array<string>(Math.max(0, count - elsewhere)).fill(text);
}

/** By model, how many GPUs are divided in which way. */
function divisions(gpus: GpuGroup[], layouts: GpuLayout[]): Map<string, Map<string, number>> {
  const found = new Map<string, Map<string, number>>();
  for (const { model, layout, count } of gpus) {
    const text = divisionOf(layouts[layout]);
    const counts = found.get(model) ?? new Map<string, number>();
    found.set(model, counts.set(text, (counts.get(text) ?? 0) + count));
  }
  return found;
}

/** How a GPU is divided, such as `2 × 3g.40gb`. */
function divisionOf(layout: GpuLayout | undefined): string {
  const counts = new Map<string, number>();
  for (const { device } of layout?.slices ?? []) counts.set(device, (counts.get(device) ?? 0) + 1);
  const parts = [...counts].map(([device, count]) =>
    device === "all" ? "whole" : `${count} × ${device}`,
  );
  return parts.join(", ") || "unknown";
}
