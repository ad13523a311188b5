import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Fleet, FleetCluster, ScoreColumn } from "../api/wire";
import { appsOf, chosenColumns, chosenScore, rows, titleOf } from "./matrix-rows";
import type { MatrixView, Row } from "./matrix-rows";
import { shown, tint } from "./score-colour";

/** Height of a row in CSS pixels, as in the style sheet. */
const ROW_HEIGHT = 36;

/** Rows drawn beyond what is visible, so that scrolling shows no gap. */
const MARGIN_ROWS = 8;

const MOVES: Record<string, (row: number, last: number, page: number) => number> = {
  ArrowDown: (row) => row + 1,
  ArrowUp: (row) => row - 1,
  PageDown: (row, _, page) => row + page,
  PageUp: (row, _, page) => row - page,
  Home: () => 0,
  End: (_, last) => last,
};

/** Managed clusters by score column. Only visible rows are drawn: a fleet may have thousands. */
export function FleetMatrix({ fleet, onOpen }: { fleet: Fleet; onOpen: (name: string) => void }) {
  const [view, setView] = useState<MatrixView>({ score: "", app: "", filter: "", sort: "name" });
  const score = chosenScore(fleet, view);
  const columns = chosenColumns(score, view);
  const order = useMemo(() => rows(fleet, view), [fleet, view]);
  const change = (part: Partial<MatrixView>) => setView({ ...view, ...part });
  return (
    <section aria-label="Fleet">
      <div class="controls">
        <label>
          Score
          <select
            value={score?.name ?? ""}
            onChange={(event) =>
              change({ score: event.currentTarget.value, app: "", sort: "name" })
            }
          >
            {fleet.scores.map((item) => (
              <option key={item.name} value={item.name}>
                {item.display_name || item.name}
              </option>
            ))}
          </select>
        </label>
        <label>
          App
          <select
            value={view.app}
            onChange={(event) => change({ app: event.currentTarget.value, sort: "name" })}
          >
            <option value="">all</option>
            {appsOf(score).map((app) => (
              <option key={app} value={app}>
                {app}
              </option>
            ))}
          </select>
        </label>
        <label>
          Find
          <input
            type="search"
            value={view.filter}
            placeholder="cluster, policy, workload"
            onInput={(event) => change({ filter: event.currentTarget.value })}
          />
        </label>
        <p class="legend">
          {score ? legend(score.description, score.unit, score.direction) : "No scores yet."}
        </p>
      </div>
      <Grid
        fleet={fleet}
        order={order}
        columns={columns}
        view={view}
        onSort={(sort) => change({ sort })}
        onOpen={onOpen}
      />
      <p class="count" role="status">
        {order.length} of {fleet.clusters.length} clusters
        {score && score.omitted_columns > 0 && `; ${score.omitted_columns} columns left out`}
      </p>
    </section>
  );
}

function legend(description: string, unit: string, direction: string | null): string {
  const better = direction === "LowerIsBetter" ? "lower" : "higher";
  return [description, unit && `in ${unit}`, `${better} is better: stronger colour`]
    .filter(Boolean)
    .join(", ");
}

interface GridProps {
  fleet: Fleet;
  order: Row[];
  columns: ScoreColumn[];
  view: MatrixView;
  onSort: (sort: MatrixView["sort"]) => void;
  onOpen: (name: string) => void;
}

function Grid({ fleet, order, columns, view, onSort, onOpen }: GridProps) {
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(600);
  const [active, setActive] = useState(0);
  const last = Math.max(0, order.length - 1);
  const focused = Math.min(active, last);

  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const observer = new ResizeObserver(() => setHeight(element.clientHeight));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);

  const move = (event: KeyboardEvent) => {
    if (event.target !== event.currentTarget) return; // a heading's own key
    if (event.key === "Enter") {
      const name = fleet.clusters[order[focused] ?? -1]?.name;
      if (name) onOpen(name);
      return;
    }
    const next = MOVES[event.key];
    if (!next) return;
    event.preventDefault();
    const page = Math.max(1, Math.floor(height / ROW_HEIGHT) - 2);
    const row = Math.min(last, Math.max(0, next(focused, last, page)));
    setActive(row);
    reveal(box.current, row);
  };

  const ascending = chosenScore(fleet, view)?.direction === "LowerIsBetter";
  const first = Math.max(0, Math.floor(top / ROW_HEIGHT) - MARGIN_ROWS);
  const end = Math.min(order.length, first + Math.ceil(height / ROW_HEIGHT) + 2 * MARGIN_ROWS);
  return (
    // One stop for the Tab key; arrows move between rows, as in every grid of the ARIA practices.
    <div
      class="grid"
      ref={box}
      role="grid"
      tabIndex={0}
      aria-label="Clusters by score"
      aria-rowcount={order.length + 1}
      style={{ height: `min(60vh, ${(order.length + 2) * ROW_HEIGHT}px)` }}
      aria-activedescendant={order.length ? `row-${order[focused]}` : undefined}
      onScroll={(event) => setTop(event.currentTarget.scrollTop)}
      onKeyDown={move}
    >
      <div class="line head" role="row" aria-rowindex={1}>
        <Heading
          text="Cluster"
          sorted={view.sort === "name"}
          ascending
          onSort={() => onSort("name")}
        />
        <span role="columnheader">State</span>
        <span role="columnheader">Policy</span>
        <span role="columnheader">Runs</span>
        {columns.map((column, position) => (
          <Heading
            key={titleOf(column)}
            text={titleOf(column)}
            sorted={view.sort === position}
            ascending={ascending}
            onSort={() => onSort(position)}
          />
        ))}
      </div>
      <div class="rows" role="rowgroup" style={{ height: `${order.length * ROW_HEIGHT}px` }}>
        {order.slice(first, end).map((row, offset) => (
          <Line
            key={row}
            fleet={fleet}
            row={row}
            position={first + offset}
            columns={columns}
            view={view}
            selected={first + offset === focused}
            onOpen={onOpen}
          />
        ))}
      </div>
    </div>
  );
}

interface HeadingProps {
  text: string;
  sorted: boolean;
  /** Whether its order is from the least to the greatest. */
  ascending: boolean;
  onSort: () => void;
}

function Heading({ text, sorted, ascending, onSort }: HeadingProps) {
  const order = ascending ? "ascending" : "descending";
  return (
    <span role="columnheader" aria-sort={sorted ? order : "none"}>
      <button type="button" class="quiet" onClick={onSort} title={`Sort by ${text}`}>
        {text}
      </button>
    </span>
  );
}

interface LineProps {
  fleet: Fleet;
  row: Row;
  position: number;
  columns: ScoreColumn[];
  view: MatrixView;
  selected: boolean;
  onOpen: (name: string) => void;
}

function Line({ fleet, row, position, columns, view, selected, onOpen }: LineProps) {
  const cluster = fleet.clusters[row];
  const score = chosenScore(fleet, view);
  if (!cluster) return null;
  const expired = score?.expired.includes(row) ?? false;
  return (
    <div
      class={selected ? "line selected" : "line"}
      role="row"
      id={`row-${row}`}
      aria-rowindex={position + 2}
      style={{ transform: `translateY(${position * ROW_HEIGHT}px)` }}
      onClick={() => onOpen(cluster.name)}
    >
      <span role="rowheader" title={cluster.name}>
        {cluster.name}
      </span>
      <State cluster={cluster} />
      <span role="gridcell" title={policies(cluster)}>
        {policies(cluster) || "none"}
      </span>
      <span role="gridcell" title={workloads(cluster)}>
        {workloads(cluster) || "none"}
      </span>
      {columns.map((column) => {
        const value = column.values[row] ?? null;
        return (
          <span
            key={titleOf(column)}
            role="gridcell"
            class={expired ? "value expired" : "value"}
            title={expired ? "expired: placement does not use it" : undefined}
            style={{ background: score && !expired ? tint(value, score) : undefined }}
          >
            {shown(value)}
          </span>
        );
      })}
    </div>
  );
}

function State({ cluster }: { cluster: FleetCluster }) {
  const [obstacle] = cluster.obstacles;
  return (
    <span
      role="gridcell"
      class={cluster.eligible ? "good" : "bad"}
      title={obstacle?.message ?? "OCM may select it"}
    >
      {obstacle?.reason ?? "Ready"}
    </span>
  );
}

function policies(cluster: FleetCluster): string {
  return cluster.enforced
    .map(
      (item) =>
        item.policy + (item.compliance === "Compliant" ? "" : ` (${item.compliance || "pending"})`),
    )
    .join(", ");
}

function workloads(cluster: FleetCluster): string {
  return cluster.running
    .map((item) => item.workload + (item.state === "Landed" ? "" : ` (${item.state})`))
    .join(", ");
}

function reveal(box: HTMLElement | null, row: number): void {
  if (!box) return;
  const [from, to] = [row * ROW_HEIGHT, (row + 1) * ROW_HEIGHT];
  const visible = box.clientHeight - ROW_HEIGHT;
  if (from < box.scrollTop) box.scrollTop = from;
  else if (to > box.scrollTop + visible) box.scrollTop = to - visible;
}
