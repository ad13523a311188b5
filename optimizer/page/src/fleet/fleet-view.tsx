import { useMemo, useRef, useState } from "preact/hooks";
import type { Fleet } from "../api/wire";
import { byNaturalOrder } from "../parts/natural-order";
import { counted } from "../parts/sentences";
import { Table } from "../parts/table";
import { useAddress } from "../parts/use-address";
import { type Fill, FREE, OTHERS, STATE_NAMES, STATES } from "./drawing-colours";
import { byScore, byState, byWorkload, workloadFills } from "./drawing-colours";
import type { Detail, DrawnGroup } from "./drawing-layout";
import { type ChosenScore, type DrawnCluster, drawnFleet } from "./drawn-fleet";
import { grouped, groupings, SORTS, type Sort, use } from "./drawn-groups";
import { type DrawingHandle, FleetDrawing } from "./fleet-drawing";
import { shown } from "./score-colour";
import { appsOf } from "./score-rows";

const COLOURS = { workload: "workload", score: "score", state: "state" };
type Colouring = keyof typeof COLOURS;

/** Workloads that the legend lists by name. */
const MAX_NAMED = 12;

/** Rows that the table gets at a time. */
const ROWS = 200;

interface Props {
  fleet: Fleet;
  /** Clusters that changed at the last read. */
  changed?: ReadonlySet<string>;
  onOpen: (cluster: string) => void;
}

/** The fleet as a drawing or as a table, coloured, grouped and sorted as somebody wants. */
export function FleetView({ fleet, changed, onOpen }: Props) {
  const [colourName, setColour] = useAddress("colour", "workload");
  const [groupName, setGroup] = useAddress("group");
  const [sortName, setSort] = useAddress("sort", "name");
  const [scoreName, setScore] = useAddress("score");
  const [appName, setApp] = useAddress("app");
  const [find, setFind] = useAddress("find");
  const [as, setAs] = useAddress("as");
  const asTable = as === "table";
  const handle = useRef<DrawingHandle>(null);

  const score = fleet.scores.find((item) => item.name === scoreName) ?? fleet.scores[0];
  const apps = useMemo(() => appsOf(score), [score]);
  const app = apps.includes(appName) ? appName : (apps[0] ?? "");
  const chosen = useMemo<ChosenScore | null>(() => (score ? { score, app } : null), [score, app]);
  const clusters = useMemo(() => drawnFleet(fleet, chosen), [fleet, chosen]);
  const options = useMemo(() => groupings(clusters), [clusters]);
  // An address may ask for what this fleet does not have.
  const group = Object.hasOwn(options, groupName) ? groupName : "";
  const sort = (Object.hasOwn(SORTS, sortName) ? sortName : "name") as Sort;
  const colour = (Object.hasOwn(COLOURS, colourName) ? colourName : "workload") as Colouring;
  const groups = useMemo(
    () => grouped(clusters, group, sort, chosen),
    [clusters, group, sort, chosen],
  );
  const fills = useMemo(() => fillsOf(clusters), [clusters]);
  const colours = useMemo(() => {
    if (colour === "score" && chosen) return byScore(chosen);
    return colour === "state" ? byState() : byWorkload(fills);
  }, [colour, chosen, fills]);
  const found = useMemo(() => finder(clusters, find), [clusters, find]);
  const hits = found ? clusters.filter((cluster) => found(cluster, null)).length : 0;
  const scored = colour === "score" || sort === "score";
  const save = async () => {
    const blob = await handle.current?.png();
    if (!blob) return;
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = "fleet.png";
    link.click();
    URL.revokeObjectURL(link.href);
  };
  return (
    <section aria-label="Drawing of the fleet">
      <div class="controls">
        <Choice label="Colour" value={colour} options={COLOURS} onChange={setColour} />
        {scored && score && (
          <Choice
            label="Score"
            value={score.name}
            options={named(fleet.scores.map((one) => [one.name, one.display_name || one.name]))}
            onChange={setScore}
          />
        )}
        {scored && apps.length > 0 && (
          <Choice
            label="App"
            value={app}
            options={named(apps.map((one) => [one, one || "of no app"]))}
            onChange={setApp}
          />
        )}
        <Choice label="Group" value={group} options={options} onChange={setGroup} />
        <Choice label="Sort" value={sort} options={SORTS} onChange={setSort} />
        <label>
          Highlight
          <input
            type="search"
            value={find}
            placeholder="cluster, workload, policy, GPU"
            onInput={(event) => setFind(event.currentTarget.value, true)}
          />
        </label>
        <span class="buttons">
          <button
            type="button"
            aria-pressed={asTable}
            onClick={() => setAs(asTable ? "" : "table")}
          >
            As a table
          </button>
          {!asTable && (
            <button type="button" onClick={save}>
              Save as PNG
            </button>
          )}
        </span>
      </div>
      {asTable ? (
        <FleetTable groups={groups} found={found} chosen={scored ? chosen : null} onOpen={onOpen} />
      ) : (
        <FleetDrawing
          label={`The fleet: ${use(clusters)}`}
          {...{ groups, colours, found, handle, onOpen }}
          {...(changed ? { changed } : {})}
          legend={(detail) => <Legend {...{ detail, colour, chosen, fills, clusters }} />}
        />
      )}
      <p class="count" role="status">
        {use(clusters)}
        {found && `; ${counted(hits, "cluster")} found`}
      </p>
    </section>
  );
}

function Choice(props: {
  label: string;
  value: string;
  options: Record<string, string>;
  onChange: (value: string) => void;
}) {
  return (
    <label>
      {props.label}
      <select value={props.value} onChange={(event) => props.onChange(event.currentTarget.value)}>
        {Object.entries(props.options).map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

const named = (pairs: [string, string][]) => Object.fromEntries(pairs);

function fillsOf(clusters: DrawnCluster[]): Map<string, Fill> {
  const names = new Set<string>();
  for (const { gpus } of clusters) {
    for (const { workloads } of gpus) for (const name of workloads) if (name) names.add(name);
  }
  return workloadFills(names);
}

/** Whether a search finds a cluster, or a slice of it that runs a workload; null: nothing is sought. */
function finder(clusters: DrawnCluster[], text: string) {
  const wanted = text.trim().toLowerCase();
  if (!wanted) return null;
  const has = (text: string) => text.toLowerCase().includes(wanted);
  const whole = new Set<DrawnCluster>();
  const parts = new Set<DrawnCluster>();
  const workloads = new Set<string | null>();
  for (const cluster of clusters) {
    const names = new Set(cluster.gpus.flatMap((gpu) => gpu.workloads));
    const models = cluster.gpus.map((gpu) => gpu.model);
    if ([cluster.name, ...cluster.policies, ...new Set(models)].some(has)) whole.add(cluster);
    for (const name of names) {
      if (!name || !has(name)) continue;
      parts.add(cluster);
      workloads.add(name);
    }
  }
  return (cluster: DrawnCluster, workload: string | null): boolean =>
    whole.has(cluster) || (workload === null ? parts.has(cluster) : workloads.has(workload));
}

function Legend(props: {
  detail: Detail;
  colour: Colouring;
  chosen: ChosenScore | null;
  fills: Map<string, Fill>;
  clusters: DrawnCluster[];
}) {
  const { detail, colour, chosen, fills, clusters } = props;
  if (colour === "score") {
    return chosen ? <Scale {...chosen} /> : <p class="legend">No scores yet.</p>;
  }
  if (colour === "state") {
    const there = new Set(clusters.map((cluster) => cluster.state));
    const states = (Object.keys(STATES) as DrawnCluster["state"][]).filter((one) => there.has(one));
    return (
      <ul class="legend keys">
        {states.map((state) => (
          <Key key={state} fill={STATES[state]} text={STATE_NAMES[state]} />
        ))}
        <Key fill={FREE} text="free" />
      </ul>
    );
  }
  if (detail === "cell") return <Ramp what="slices in use" from="0%" to="100%" />;
  const listed = fills.size <= MAX_NAMED ? [...fills] : [];
  return (
    <ul class="legend keys">
      {listed.map(([name, fill]) => (
        <Key key={name} fill={fill} text={name} />
      ))}
      {!listed.length && fills.size > 0 && (
        <li>{fills.size} workloads, each in its colour and pattern</li>
      )}
      <Key fill={OTHERS} text="Pods of others" />
      <Key fill={FREE} text="free" />
      <Key fill={GAP} text="memory in no slice" />
      {detail === "labels" && <li>small squares: compute slices</li>}
    </ul>
  );
}

const GAP: Fill = { colour: "--gap", pattern: "none" };

/** What a share of the scale means, from its faintest to its strongest colour. */
function Ramp(props: { what: string; from: string; to: string; more?: string }) {
  return (
    <p class="legend">
      {props.what}: {props.from} <span class="ramp" /> {props.to}
      {props.more}
    </p>
  );
}

/** A line of a legend. */
export function Key({ fill, text }: { fill: Fill; text: string }) {
  const background = fill.colour === null ? undefined : `var(${fill.colour})`;
  return (
    <li>
      <span class={`swatch ${fill.pattern}`} style={{ backgroundColor: background }} />
      {text}
    </li>
  );
}

function Scale({ score, app }: ChosenScore) {
  const { minimum, maximum, unit, direction } = score;
  const what = [score.display_name || score.name, app && `of ${app}`].filter(Boolean).join(" ");
  if (minimum === null || maximum === null) return <p class="legend">{what} has no values yet.</p>;
  const lower = direction === "LowerIsBetter";
  const [worst, best] = lower ? [maximum, minimum] : [minimum, maximum];
  const more = " · dot: in use · hatched: no score";
  if (worst === best) {
    return (
      <p class="legend">
        {what}: {shown(best)} {unit} everywhere{more}
      </p>
    );
  }
  const to = `${shown(best)} ${unit} (best)`;
  return <Ramp what={what} from={`${shown(worst)} (worst)`} to={to} more={more} />;
}

function FleetTable(props: {
  groups: DrawnGroup[];
  found: ((cluster: DrawnCluster, workload: string | null) => boolean) | null;
  chosen: ChosenScore | null;
  onOpen: (cluster: string) => void;
}) {
  const { groups, found, chosen, onOpen } = props;
  const [most, setMost] = useState(ROWS);
  const rows = groups.flatMap(({ title, clusters }) =>
    clusters
      .filter((cluster) => !found || found(cluster, null))
      .map((cluster) => ({ title, cluster })),
  );
  const titled = groups.some((group) => group.title);
  const heads = ["Cluster", "GPUs", "Runs", "Free slices", "State"];
  if (titled) heads.push("Group");
  if (chosen) heads.push("Score");
  return (
    <div class="drawn-table">
      <Table
        caption="Clusters with their GPUs"
        heads={heads}
        rows={rows.slice(0, most).map(({ title, cluster }) => ({
          key: cluster.name,
          cells: [
            <button type="button" class="quiet" onClick={() => onOpen(cluster.name)}>
              {cluster.name}
            </button>,
            gpusTold(cluster),
            runsTold(cluster),
            cluster.slices ? `${cluster.slices - cluster.used} of ${cluster.slices}` : "–",
            cluster.told || STATE_NAMES[cluster.state],
            ...(titled ? [title] : []),
            ...(chosen ? [shown(cluster.score)] : []),
          ],
        }))}
      />
      {rows.length > most && (
        <button type="button" onClick={() => setMost(most + ROWS)}>
          {Math.min(ROWS, rows.length - most)} more of {rows.length}
        </button>
      )}
    </div>
  );
}

/** `4 × A100-80GB: 2 × 3g.40gb`, for each kind of GPU and layout. */
function gpusTold({ gpus }: DrawnCluster): string {
  return counts(
    gpus.map(({ model, layout }) => {
      const devices = layout.slices.map((slice) =>
        slice.device === "all" ? "whole" : slice.device,
      );
      return `${model || "unknown"}: ${counts(devices, times, ", ")}`;
    }),
    (text, count) => `${count} × ${text}`,
  );
}

const times = (text: string, count: number) => (count > 1 ? `${count} × ${text}` : text);

function runsTold({ gpus, elsewhere }: DrawnCluster): string {
  const there = gpus.flatMap(({ layout, workloads }) =>
    workloads.flatMap((name, at) =>
      name === null ? [] : [`${name || "others"} on ${layout.slices[at]!.device}`],
    ),
  );
  const also = elsewhere.map((item) => `${item.workload || "others"} on ${item.device}`);
  return counts([...there, ...also].sort(byNaturalOrder), times);
}

function counts(
  texts: string[],
  told: (text: string, count: number) => string,
  between = "; ",
): string {
  const found = new Map<string, number>();
  for (const text of texts) found.set(text, (found.get(text) ?? 0) + 1);
  return [...found].map(([text, count]) => told(text, count)).join(between) || "none";
}
