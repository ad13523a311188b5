import { useMemo, useRef, useState } from "preact/hooks";
import type { Fleet } from "../api/wire";
import { Choice, Search } from "../parts/choice";
import { byNaturalOrder } from "../parts/natural-order";
import { counted } from "../parts/sentences";
import { Table } from "../parts/table";
import { useAddress } from "../parts/use-address";
import { byScore, byState, byWorkload, COLOURS, type Colouring } from "./drawing-colours";
import { type Fill, STATE_NAMES, workloadFills } from "./drawing-colours";
import type { DrawnGroup } from "./drawing-layout";
import { type ChosenScore, countsOf, divisionOf, type DrawnCluster } from "./drawn-fleet";
import { drawnFleet, times } from "./drawn-fleet";
import { grouped, groupingOf, groupings, SORTS, type Sort, titleOf, useOf } from "./drawn-groups";
import { type DrawingHandle, FleetDrawing } from "./fleet-drawing";
import { gpuUse } from "./gpu-use";
import { Legend } from "./legend";
import { shown } from "./score-colour";
import { appNames, appsOf, chosenScore, scoreNames } from "./score-rows";

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

  const score = chosenScore(fleet, scoreName);
  const apps = useMemo(() => appsOf(score), [score]);
  const app = apps.includes(appName) ? appName : (apps[0] ?? "");
  const chosen = useMemo<ChosenScore | null>(() => (score ? { score, app } : null), [score, app]);
  const clusters = useMemo(() => drawnFleet(fleet, chosen), [fleet, chosen]);
  const options = useMemo(() => groupings(clusters), [clusters]);
  // An address may ask for what this fleet does not have.
  const group = groupingOf(options, groupName);
  const sort = (Object.hasOwn(SORTS, sortName) ? sortName : "name") as Sort;
  const colour = (Object.hasOwn(COLOURS, colourName) ? colourName : "workload") as Colouring;
  const uses = useMemo(
    () => (group ? gpuUse(fleet, (row) => titleOf(clusters[row]!, group)) : null),
    [fleet, clusters, group],
  );
  const groups = useMemo(
    () => grouped(clusters, group, sort, chosen, uses),
    [clusters, group, sort, chosen, uses],
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
            options={scoreNames(fleet)}
            onChange={setScore}
          />
        )}
        {scored && apps.length > 0 && (
          <Choice label="App" value={app} options={appNames(apps)} onChange={setApp} />
        )}
        <Choice label="Group" value={group} options={options} onChange={setGroup} />
        <Choice label="Sort" value={sort} options={SORTS} onChange={setSort} />
        <Search
          label="Highlight"
          placeholder="cluster, workload, policy, GPU"
          value={find}
          onChange={setFind}
        />
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
          label={`The fleet: ${useOf(clusters)}`}
          {...{ groups, colours, found, handle, onOpen }}
          {...(changed ? { changed } : {})}
          legend={(detail) => <Legend {...{ detail, colour, chosen, fills, clusters }} />}
        />
      )}
      <p class="count" role="status">
        {useOf(clusters)}
        {found && `; ${counted(hits, "cluster")} found`}
      </p>
    </section>
  );
}

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
      {titled && (
        <ul>
          {groups.map(({ title, told, models }) => (
            <li key={title}>
              <b>{title}</b> {told} {models && <span class="count">{models}</span>}
            </li>
          ))}
        </ul>
      )}
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
  const texts = gpus.map(
    ({ model, layout }) => `${model || "unknown"}: ${divisionOf(layout) || "none"}`,
  );
  const told = [...countsOf(texts)].map(([text, count]) => `${count} × ${text}`);
  return told.join("; ") || "none";
}

function runsTold({ gpus, elsewhere }: DrawnCluster): string {
  const there = gpus.flatMap(({ layout, workloads }) =>
    workloads.flatMap((name, at) =>
      name === null ? [] : [`${name || "others"} on ${layout.slices[at]!.device}`],
    ),
  );
  const also = elsewhere.map((item) => `${item.workload || "others"} on ${item.device}`);
  const counts = countsOf([...there, ...also].sort(byNaturalOrder));
  return [...counts].map(times).join("; ") || "none";
}
