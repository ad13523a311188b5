import type { Fleet, FleetCluster, GpuGroup, GpuLayout, Plan, StepActions } from "../api/wire";
import { divisionOf } from "../fleet/drawn-fleet";
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

/** The fleet as it is after the first steps of a plan; clusters that it pretends are part of it. */
export function fleetAfter(fleet: Fleet, plan: DrawnPlan, steps: PlanStep[]): Fleet {
  const { layouts, gpus_after } = plan;
  const told = new Map(gpus_after.map((item) => [item.cluster, item]));
  const come = new Set(plan.moves.flatMap((move) => gone(move, "after", "before")).map(keyOf));
  const divided = new Set(steps.flatMap((step) => step.divided));
  const running = new Map<string, Map<string, boolean>>();
  const run = ({ cluster, workload }: Replica, runs: boolean) =>
    running.set(cluster, (running.get(cluster) ?? new Map()).set(workload, runs));
  for (const step of steps) {
    for (const item of step.stops) run(item, false);
    for (const item of step.starts) run(item, true);
  }
  const here = (groups: GpuGroup[]) =>
    groups.map((item) => ({ ...item, layout: item.layout + fleet.layouts.length }));
  const names = new Set(fleet.clusters.map((item) => item.name));
  const pretended = gpus_after
    .filter((item) => !names.has(item.cluster))
    .map((item) => ({ ...UNKNOWN, name: item.cluster, gpus: here(item.before) }));
  return {
    ...fleet,
    layouts: [...fleet.layouts, ...layouts],
    clusters: [...fleet.clusters, ...pretended].map((cluster) => {
      const anew = divided.has(cluster.name) ? told.get(cluster.name) : undefined;
      const runs = running.get(cluster.name);
      if (!anew && !runs) return cluster;
      const after = told.get(cluster.name)?.occupied ?? [];
      const stay = (anew ? after : cluster.occupied).filter(
        ({ workload }) =>
          !runs?.has(workload) && !(anew && come.has(keyOf({ workload, cluster: cluster.name }))),
      );
      const started = after.filter(({ workload }) => runs?.get(workload));
      return {
        ...cluster,
        gpus: anew ? here(anew.gpus) : cluster.gpus,
        occupied: [...stay, ...started],
      };
    }),
  };
}

/** A cluster of which the hub knows nothing. */
const UNKNOWN: FleetCluster = {
  ...{ name: "", eligible: true, obstacles: [], health: "Unknown", hardware: {}, claim: "" },
  ...{ enforced: [], running: [], gpus: [], occupied: [], labels: {} },
};

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
export function gpuChanges({ gpus_after, layouts }: DrawnPlan): GpuChange[] {
  const found = new Map<string, GpuChange>();
  for (const { cluster, before: groups, gpus } of gpus_after) {
    const [now, planned] = [divisions(groups, layouts), divisions(gpus, layouts)];
    const left = surplus(now, planned);
    for (const come of surplus(planned, now)) {
      for (const from of [...left, { model: "", text: "unknown", count: Infinity }]) {
        const count = Math.min(come.count, from.count);
        if (count === 0 || !mayBeOne(come, from)) continue;
        come.count -= count;
        from.count -= count;
        const change = { model: come.model || from.model, before: from.text, after: come.text };
        const key = JSON.stringify(change);
        const known = found.get(key) ?? { ...change, count: 0, clusters: [] };
        known.count += count;
        if (known.clusters.at(-1) !== cluster) known.clusters.push(cluster);
        found.set(key, known);
      }
    }
  }
  return [...found.values()].sort((one, other) => other.count - one.count);
}

/** So many GPUs of a model, divided in one way. */
interface Division {
  model: string;
  text: string;
  count: number;
}

/** A policy's devices do not always tell the model, and no plan exchanges a GPU. */
function mayBeOne(one: Division, other: Division): boolean {
  return !one.model || !other.model || one.model === other.model;
}

/** What has more GPUs than among the others. */
function surplus(divided: Division[], others: Division[]): Division[] {
  return divided.map((item) => {
    const same = others.find((other) => other.text === item.text && mayBeOne(other, item));
    return { ...item, count: Math.max(0, item.count - (same?.count ?? 0)) };
  });
}

function divisions(gpus: GpuGroup[], layouts: GpuLayout[]): Division[] {
  const found = new Map<string, Division>();
  for (const { model, layout, count } of gpus) {
    const text = (layouts[layout] && divisionOf(layouts[layout])) || "unknown";
    const key = JSON.stringify([model, text]);
    found.set(key, { model, text, count: count + (found.get(key)?.count ?? 0) });
  }
  return [...found.values()];
}
