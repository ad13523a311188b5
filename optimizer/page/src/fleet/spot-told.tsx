import { useLayoutEffect, useRef } from "preact/hooks";
import { counted, listed } from "../parts/sentences";
import type { Spot } from "./drawing-layout";
import type { Occupied } from "../api/wire";
import { shown } from "./score-colour";

/** What is told of GPUs that no inventory lists. */
const KNOWN = {
  Inventory: "drawn as the profile table places them; nobody reports where they lie",
  Policy: "as its policy asks for, drawn as the profile table places them",
  Hardware: "by its labels; how it is divided is not known",
};

interface Props {
  spot: Spot;
  /** Where it is in the drawing, whose size is `width` and `height`. */
  at: { x: number; y: number };
  width: number;
  height: number;
}

/** Tells what is at a place of the drawing: cluster, GPU, slice and workload, and what is free. */
export function SpotTold({ spot, at, width, height }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const { cluster } = spot.tile;
  const gpu = spot.gpu === null ? undefined : cluster.gpus[spot.gpu];
  const slice = spot.slice === null ? undefined : gpu?.layout.slices[spot.slice];
  const workload = spot.slice === null ? undefined : gpu?.workloads[spot.slice];
  useLayoutEffect(() => {
    const element = box.current!;
    const { offsetWidth, offsetHeight } = element;
    const x = Math.max(0, Math.min(at.x + 14, width - offsetWidth));
    const below = at.y + 16;
    const y = below + offsetHeight > height ? Math.max(0, at.y - offsetHeight - 12) : below;
    element.style.transform = `translate(${x}px, ${y}px)`;
  });
  return (
    <div class="told" ref={box} role="status">
      <strong>{cluster.name}</strong>
      {cluster.told && <p class="bad">{cluster.told}</p>}
      {gpu && (
        <p>
          GPU {spot.gpu! + 1} of {cluster.gpus.length + cluster.omitted}: {gpu.model || "unknown"}
        </p>
      )}
      {gpu && slice && (
        <p>
          {slice.device === "all" ? "the whole GPU" : slice.device}: {slice.memory} of{" "}
          {gpu.layout.memory} memory slices, {slice.compute} of {gpu.layout.compute} compute slices
        </p>
      )}
      {slice && (
        <p>
          {workload === null ? "free" : workload ? `runs ${workload}` : "taken by Pods of others"}
          {scoreOf(cluster.scores, slice.device)}
        </p>
      )}
      <p>
        {cluster.slices
          ? `${cluster.slices - cluster.used} of ${counted(cluster.slices, "slice")} free`
          : "no GPU is known"}
        {!slice && cluster.score !== null && `, score ${shown(cluster.score)}`}
      </p>
      {gpu && !slice && (
        <p>{gpu.layout.slices.length ? "memory in no slice" : "it has no slice that is known"}</p>
      )}
      {cluster.elsewhere.length > 0 && (
        <p>Not drawn: {listed(cluster.elsewhere.map(notDrawn), MAX_LISTED)}</p>
      )}
      {gpu && <p class="how">{KNOWN[gpu.known]}</p>}
    </div>
  );
}

/** Names that are listed at most. */
const MAX_LISTED = 3;

function notDrawn({ workload, device }: Occupied): string {
  return `${workload || "others"} on ${device || "a device that is not known"}`;
}

function scoreOf(scores: Map<string, number>, device: string): string {
  const score = scores.get(device) ?? scores.get("");
  return score === undefined ? "" : `, score ${shown(score)}`;
}
