import { byNaturalOrder } from "../parts/natural-order";
import type { ChosenScore, DrawnCluster, DrawnGpu } from "./drawn-fleet";
import { goodness } from "./score-colour";

/** What a fleet can be coloured by. */
export const COLOURS = { workload: "workload", score: "score", state: "state" };
export type Colouring = keyof typeof COLOURS;

/** A colour of the style sheet by its custom property, or a share of the scale from 0 to 1. */
export type Colour = string | number;

/** Drawn over a colour, so that no meaning is told by colour alone. */
export type Pattern = "none" | "lines" | "dots" | "cross" | "crossed";

export interface Fill {
  /** null: an outline. */
  colour: Colour | null;
  pattern: Pattern;
}

/** What colours mean: of a slice, and of a cluster that is too small for its slices. */
export interface Colours {
  slice(cluster: DrawnCluster, gpu: DrawnGpu, slice: number): Fill;
  cell(cluster: DrawnCluster): Fill;
}

export const FREE: Fill = { colour: null, pattern: "none" };
export const OTHERS: Fill = { colour: "--others", pattern: "lines" };
const NO_SCORE: Fill = { colour: null, pattern: "lines" };

export const STATES: Record<DrawnCluster["state"], Fill> = {
  eligible: { colour: "--calm", pattern: "none" },
  finding: { colour: "--warning", pattern: "lines" },
  expired: { colour: "--stale", pattern: "dots" },
  obstacle: { colour: "--broken", pattern: "cross" },
  lost: { colour: "--lost", pattern: "crossed" },
};

/** Of a slice that nothing uses: on a lost cluster nothing can. */
export function unused(cluster: DrawnCluster): Fill {
  return cluster.state === "lost" ? STATES.lost : FREE;
}

export const STATE_NAMES: Record<DrawnCluster["state"], string> = {
  eligible: "ready",
  finding: "something is wrong",
  expired: "its score has expired",
  obstacle: "OCM does not select it",
  lost: "the cluster is lost",
};

const HUES = 8;
const PATTERNS: Pattern[] = ["none", "lines", "dots", "cross"];
const FILLS: Fill[] = PATTERNS.flatMap((pattern) =>
  Array.from({ length: HUES }, (_, hue) => ({ colour: `--hue-${hue}`, pattern })),
);

/** Fills by workload. A name keeps its fill while no name before it needs the same one. */
export function workloadFills(workloads: Iterable<string>): Map<string, Fill> {
  const taken = new Map<Fill, string>();
  const fills = new Map<string, Fill>();
  for (const name of [...new Set(workloads)].sort(byNaturalOrder)) {
    const first = hash(name) % HUES;
    const free = FILLS.findIndex((fill, at) => at >= first && !taken.has(fill));
    const fill = FILLS[free < 0 ? hash(name) % FILLS.length : free]!;
    taken.set(fill, name);
    fills.set(name, fill);
  }
  return fills;
}

function hash(text: string): number {
  let found = 2166136261;
  for (let at = 0; at < text.length; at += 1) {
    found = Math.imul(found ^ text.charCodeAt(at), 16777619) >>> 0;
  }
  return found;
}

/** By workload; a cluster that is too small for that by the share of its slices in use. */
export function byWorkload(fills: Map<string, Fill>): Colours {
  return {
    slice(cluster, gpu, slice) {
      const workload = gpu.workloads[slice] ?? null;
      if (workload === null) return unused(cluster);
      return workload ? (fills.get(workload) ?? OTHERS) : OTHERS;
    },
    cell: ({ state, used, slices }) =>
      state === "lost" ? STATES.lost : { colour: slices ? used / slices : null, pattern: "none" },
  };
}

/** By the chosen score, of each slice's device. */
export function byScore({ score }: ChosenScore): Colours {
  const fill = (value: number | null | undefined): Fill =>
    value === null || value === undefined
      ? NO_SCORE
      : { colour: goodness(value, score), pattern: "none" };
  return {
    slice: (cluster, gpu, slice) =>
      fill(cluster.scores.get(gpu.layout.slices[slice]!.device) ?? cluster.scores.get("")),
    cell: (cluster) => fill(cluster.score),
  };
}

/** By what hinders the cluster, if anything. */
export function byState(): Colours {
  return {
    slice: (cluster, gpu, slice) =>
      gpu.workloads[slice] === null ? unused(cluster) : STATES[cluster.state],
    cell: (cluster) => STATES[cluster.state],
  };
}
