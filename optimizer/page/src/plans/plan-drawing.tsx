import { useEffect, useMemo, useState } from "preact/hooks";
import type { Fleet, Move } from "../api/wire";
import type { Link, Mark, Tone } from "../fleet/drawing-scene";
import { FREE, OTHERS, unused, type Colours, type Fill } from "../fleet/drawing-colours";
import { drawnFleet } from "../fleet/drawn-fleet";
import { FleetDrawing } from "../fleet/fleet-drawing";
import { FillMeaning, LostMeaning, ShapeMeanings } from "../fleet/legend";
import { Check } from "../parts/choice";
import { counted, listed } from "../parts/sentences";
import { Table } from "../parts/table";
import { useAddress } from "../parts/use-address";
import { pairs } from "./flows";
import { clustersOf, fleetAfter, gpuChanges, keyOf, planSteps } from "./plan-steps";
import type { DrawnPlan, PlanStep } from "./plan-steps";

/** Moves that can be told apart when all are connected at once. */
export const MOST_LINKS = 24;

/** Milliseconds that a step is shown when they are played. */
const SHOWN = 1500;

const FILLS: Record<Move["action"], Fill> = {
  moves: { colour: "--accent", pattern: "lines" },
  starts: { colour: "--good", pattern: "dots" },
  shrinks: { colour: "--broken", pattern: "cross" },
  stops: { colour: "--broken", pattern: "cross" },
  stays: { colour: "--others", pattern: "none" },
  waits: { colour: "--others", pattern: "none" },
};

const TONES: Record<string, Tone> = { moves: "accent", starts: "good" };

/** Of a cluster that is too small for its slices. */
const [CHANGES, STAYS]: [Fill, Fill] = [FILLS.moves, { colour: "--calm", pattern: "none" }];

const MEANINGS_OF_CELLS: [string, Fill][] = [
  ["changes", CHANGES],
  ["stays as it is", STAYS],
];

const MEANINGS: [string, Fill][] = [
  ["moves", FILLS.moves],
  ["first placement", FILLS.starts],
  ["stops", FILLS.stops],
  ["stays", FILLS.stays],
  ["Pods of others", OTHERS],
  ["free", FREE],
];

interface Props {
  fleet: Fleet;
  /** Null: what runs now. */
  plan: DrawnPlan | null;
  /** Whether all clusters are drawn at first, so that any can be chosen. */
  whole?: boolean;
  onCluster: (name: string) => void;
}

const NOTHING: DrawnPlan = { moves: [], enforcement_changes: [], layouts: [], gpus_after: [] };

/** A plan drawn on its fleet: now, after each step of its rollout, and at its end. */
export function PlanDrawing({ fleet, plan: given, whole = false, onCluster }: Props) {
  const plan = given ?? NOTHING;
  const steps = useMemo(() => planSteps(plan), [plan]);
  const last = steps.length - 1;
  const [chosen, setChosen] = useAddress("step");
  const choose = (to: number) => setChosen(to < last ? String(to) : "", true);
  const [playing, play] = useState(false);
  const at = /^\d+$/.test(chosen) ? Math.min(Number(chosen), last) : last;
  useEffect(() => {
    if (!playing) return;
    if (at === last) return play(false);
    const timer = setTimeout(() => choose(at + 1), SHOWN);
    return () => clearTimeout(timer);
  }, [playing, at, last]);

  const touched = useMemo(() => new Set(steps.flatMap(clustersOf)), [steps]);
  const untold = useMemo(() => gpusNotTold(fleet, plan, touched), [fleet, plan, touched]);
  const [ticked, showAll] = useState<boolean | null>(null);
  const all = ticked ?? whole;
  const few = touched.size > 0 && touched.size < fleet.clusters.length;
  const groups = useMemo(() => {
    const drawn = drawnFleet(fleetAfter(fleet, plan, steps.slice(0, at + 1)), null);
    const shown = few && !all ? drawn.filter((item) => touched.has(item.name)) : drawn;
    return [{ title: "", told: "", clusters: shown }];
  }, [fleet, plan, steps, at, few, all, touched]);
  const actions = useMemo(
    () => new Map(plan.moves.map((move) => [move.workload, move.action])),
    [plan],
  );
  const colours = useMemo(() => coloursOf(actions, touched), [actions, touched]);
  const links = useMemo(
    () => linksOf(plan, steps[at], last > 1 && at > 0),
    [plan, steps, at, last],
  );
  const marks = useMemo(() => marksOf(steps[at], actions), [steps, at, actions]);
  const changed = useMemo(() => new Set(steps[at] ? clustersOf(steps[at]) : []), [steps, at]);
  const step = (to: number) => {
    play(false);
    choose(to);
  };
  return (
    <section aria-label="Fleet before and after">
      <div class="stepping">
        {last === 1 && (
          <span class="toggle" role="group" aria-label="Before and after">
            {[0, 1].map((side) => (
              <button
                key={side}
                type="button"
                aria-pressed={at === side}
                onClick={() => step(side)}
              >
                {nameOf(side, last)}
              </button>
            ))}
          </span>
        )}
        {last > 1 && (
          <>
            <button type="button" disabled={at === 0} onClick={() => step(at - 1)}>
              Back
            </button>
            <input
              type="range"
              min="0"
              max={last}
              value={at}
              aria-label="Step of the plan"
              aria-valuetext={nameOf(at, last)}
              onInput={(event) => step(Number(event.currentTarget.value))}
            />
            <button type="button" disabled={at === last} onClick={() => step(at + 1)}>
              Next
            </button>
            <button
              type="button"
              onClick={() => {
                if (at === last) choose(0);
                play(!playing);
              }}
            >
              {playing ? "Pause" : "Play"}
            </button>
          </>
        )}
        {few && (
          <Check label={`all ${fleet.clusters.length} clusters`} checked={all} onChange={showAll} />
        )}
        <p role="status">
          {last > 0 && <strong>{nameOf(at, last)}: </strong>}
          {given ? steps[at] && told(steps[at]) : "Choose a cluster: what if it were lost?"}
        </p>
        {untold && <p class="notice">{untold}</p>}
      </div>
      <FleetDrawing
        label={`The fleet ${nameOf(at, last).toLowerCase()}`}
        groups={groups}
        colours={colours}
        links={links}
        marks={marks}
        changed={changed}
        onOpen={onCluster}
        legend={(detail) => (
          <ul class="legend key">
            {(detail === "cell" ? MEANINGS_OF_CELLS : MEANINGS).map(([text, fill]) => (
              <FillMeaning key={text} fill={fill} text={text} />
            ))}
            {detail !== "cell" && <LostMeaning clusters={groups[0]!.clusters} />}
            {detail !== "cell" && last > 0 && <li>outline: starts or stops in this step</li>}
            <ShapeMeanings
              {...{ detail, clusters: groups[0]!.clusters, frame: "cluster of this step" }}
            />
          </ul>
        )}
      />
    </section>
  );
}

/** Which changed clusters are drawn without what they would run; empty: none. A plan tells the GPUs of 1,000. */
function gpusNotTold(fleet: Fleet, plan: DrawnPlan, touched: Set<string>): string {
  const known = new Set(plan.gpus_after.map((item) => item.cluster));
  const lacking = fleet.clusters.filter(
    ({ name, gpus }) => gpus.length && touched.has(name) && !known.has(name),
  );
  if (lacking.length === 0) return "";
  const which = `${known.size} of ${counted(known.size + lacking.length, "cluster")}`;
  return `The plan tells the GPUs of ${which} that it changes. The others are drawn without what they would run.`;
}

/** GPUs that are divided anew, told by GPU. */
export function GpuChanges({ plan }: { plan: DrawnPlan }) {
  const changes = useMemo(() => gpuChanges(plan), [plan]);
  if (changes.length === 0) return null;
  return (
    <Table
      caption="GPUs that are divided anew"
      heads={["GPU", "Now", "Planned", "GPUs", "Clusters"]}
      rows={changes.map(({ model, before, after, count, clusters }) => ({
        key: `${model} ${before} ${after}`,
        cells: [model || "unknown model", before, after, count, listed(clusters, NAMED)],
      }))}
    />
  );
}

/** Clusters that are named; the others are counted. */
const NAMED = 5;

function nameOf(at: number, last: number): string {
  if (at === 0) return "Now";
  return at === last ? "Planned" : `After step ${at} of ${last}`;
}

function told({ starts, stops, divided }: PlanStep): string {
  const parts = [
    stops.length && `${counted(stops.length, "place")} stopped`,
    divided.length && `policies changed on ${counted(divided.length, "cluster")}`,
    starts.length && `${counted(starts.length, "place")} started`,
  ];
  return parts.filter(Boolean).join(", ") || "what runs";
}

/** By what becomes of the workload. */
function coloursOf(actions: Map<string, Move["action"]>, touched: Set<string>): Colours {
  return {
    slice(cluster, gpu, slice) {
      const workload = gpu.workloads[slice] ?? null;
      if (workload === null) return unused(cluster);
      return workload ? FILLS[actions.get(workload) ?? "stays"] : OTHERS;
    },
    cell: (cluster) => (touched.has(cluster.name) ? CHANGES : STAYS),
  };
}

/** Arrows of all moves where they can be told apart, else of those of the step, which are strong. */
function linksOf(plan: DrawnPlan, step: PlanStep | undefined, stepwise: boolean): Link[] {
  const now = new Set([...(step?.starts ?? []), ...(step?.stops ?? [])].map(keyOf));
  const strong = (workload: string, cluster: string) => now.has(keyOf({ workload, cluster }));
  const links = plan.moves.flatMap((move) =>
    pairs(move).flatMap(([from, to]) => {
      if (from === null || to === null || from === to) return [];
      const { workload } = move;
      const end = (cluster: string, places: Move["after"]) => ({
        ...{ cluster, workload },
        device: places.find((place) => place.cluster === cluster)?.device ?? "",
      });
      const link: Link = { from: end(from, move.before), to: end(to, move.after), tone: "accent" };
      return [{ ...link, strong: stepwise && (strong(workload, from) || strong(workload, to)) }];
    }),
  );
  const few = links.length <= MOST_LINKS ? links : links.filter((link) => link.strong);
  return few.length <= MOST_LINKS ? few : [];
}

function marksOf(step: PlanStep | undefined, actions: Map<string, Move["action"]>): Mark[] {
  if (!step) return [];
  const mark = (place: PlanStep["starts"][number], tone: Tone) => ({ place, tone });
  return [
    ...step.starts.map((item) => mark(item, TONES[actions.get(item.workload) ?? ""] ?? "good")),
    ...step.stops.map((item) => mark(item, TONES[actions.get(item.workload) ?? ""] ?? "bad")),
  ];
}
