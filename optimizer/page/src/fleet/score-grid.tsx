import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { Fleet, FleetCluster, FleetScore, ScoreColumn } from "../api/wire";
import { duration } from "../parts/times";
import { useSize } from "../parts/use-size";
import type { FleetChanges } from "./fleet-changes";
import { type Age, ageOf, ageTold } from "./freshness";
import { bestOf, type Row, titleOf } from "./score-rows";
import { shown, tint } from "./score-colour";
import { SpreadBars } from "./score-spread";

/** Heights of a row and of the heading in CSS pixels, as in the style sheet. */
const [ROW_HEIGHT, HEAD_HEIGHT] = [32, 62];

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

interface Props {
  fleet: Fleet;
  changes: FleetChanges;
  onOpen: (name: string) => void;
  score: FleetScore | undefined;
  app: string;
  order: Row[];
  columns: ScoreColumn[];
  sort: string;
  onSort: (sort: string) => void;
}

/**
 * A grid of clusters with a score of one app, its devices side by side. Only visible rows are drawn: a fleet
 * may have thousands.
 */
export function ScoreGrid(props: Props) {
  const { fleet, score, app, order, columns, sort, changes, onSort, onOpen } = props;
  const [box, , height] = useSize<HTMLDivElement>();
  const [top, setTop] = useState(0);
  const [active, setActive] = useState(0);
  const last = Math.max(0, order.length - 1);
  const focused = Math.min(active, last);

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
    const page = Math.max(1, Math.floor((height - HEAD_HEIGHT) / ROW_HEIGHT) - 1);
    const row = Math.min(last, Math.max(0, next(focused, last, page)));
    setActive(row);
    reveal(box.current, row);
  };

  const ascending = score?.direction === "LowerIsBetter";
  const first = Math.max(0, Math.floor(top / ROW_HEIGHT) - MARGIN_ROWS);
  const end = Math.min(order.length, first + Math.ceil(height / ROW_HEIGHT) + 2 * MARGIN_ROWS);
  const scored = changes.scores.get(score?.name ?? "");
  const expired = useMemo(() => new Set(score?.expired), [score]);
  const policies = enforces(fleet);
  const size = {
    "--columns": `5rem minmax(11rem, 20rem) repeat(${columns.length}, 6.2rem) 8rem 7rem repeat(${policies ? 2 : 1}, minmax(9rem, 1fr))`,
    "--least": `${(policies ? 49 : 40) + 6.2 * columns.length}rem`,
  };
  return (
    // One stop for the Tab key; arrows move between rows, as in every grid of the ARIA practices.
    <div
      class="grid"
      ref={box}
      role="grid"
      tabIndex={0}
      aria-label="Clusters by score"
      aria-rowcount={order.length + 1}
      style={size}
      aria-activedescendant={order.length ? `row-${order[focused]}` : undefined}
      onScroll={(event) => setTop(event.currentTarget.scrollTop)}
      onKeyDown={move}
    >
      <div class="line head" role="row" aria-rowindex={1}>
        <Heading
          text="Rank"
          title="Sort by the best device"
          sorted={sort === "best"}
          ascending={ascending}
          onSort={() => onSort("best")}
        />
        <Heading text="Cluster" sorted={sort === "name"} ascending onSort={() => onSort("name")} />
        {columns.map((column) => (
          <Heading
            key={titleOf(column)}
            text={titleOf(column)}
            title={`Sort by ${[app, titleOf(column)].filter(Boolean).join(" ")}`}
            sorted={sort === titleOf(column)}
            ascending={ascending}
            onSort={() => onSort(titleOf(column))}
          >
            {score && <SpreadBars score={score} values={column.values} />}
          </Heading>
        ))}
        <Heading
          text="Age"
          title="Sort by what expires next"
          sorted={sort === "age"}
          ascending={false}
          onSort={() => onSort("age")}
        />
        <span role="columnheader">State</span>
        {policies && <span role="columnheader">Policy</span>}
        <span role="columnheader">Runs</span>
      </div>
      <div class="rows" role="rowgroup" style={{ height: `${order.length * ROW_HEIGHT}px` }}>
        {order.slice(first, end).map((row, offset) => (
          <Line
            key={row}
            cluster={fleet.clusters[row]!}
            row={row}
            position={first + offset}
            ranked={sort !== "name" && sort !== "age"}
            score={score}
            age={score ? ageOf(fleet, score, row, expired.has(row)) : null}
            policies={policies}
            columns={columns}
            selected={first + offset === focused}
            fresh={freshClass(scored, fleet.clusters[row]!.name, changes)}
            onOpen={onOpen}
          />
        ))}
      </div>
    </div>
  );
}

/** Whether some cluster has a policy of a plan, so that a column tells which. */
export function enforces({ clusters }: Fleet): boolean {
  return clusters.some(({ enforced }) => enforced.length > 0);
}

/** The class that highlights a change once; two take turns, so that a second change is seen, too. */
export function freshClass(
  names: ReadonlySet<string> | undefined,
  name: string,
  { number }: FleetChanges,
): string {
  return names?.has(name) ? ` fresh-${number % 2}` : "";
}

interface HeadingProps {
  text: string;
  title?: string;
  sorted: boolean;
  /** Whether its order is from the least to the greatest. */
  ascending: boolean;
  onSort: () => void;
  children?: ComponentChildren;
}

function Heading({ text, title, sorted, ascending, onSort, children }: HeadingProps) {
  const order = ascending ? "ascending" : "descending";
  return (
    <span role="columnheader" aria-sort={sorted ? order : "none"}>
      <button type="button" class="quiet" onClick={onSort} title={title ?? `Sort by ${text}`}>
        {text}
        {sorted && <span aria-hidden="true"> {ascending ? "↑" : "↓"}</span>}
      </button>
      {children}
    </span>
  );
}

interface LineProps {
  cluster: FleetCluster;
  row: Row;
  position: number;
  /** Whether the position is its rank. */
  ranked: boolean;
  score: FleetScore | undefined;
  age: Age | null;
  policies: boolean;
  columns: ScoreColumn[];
  selected: boolean;
  fresh: string;
  onOpen: (name: string) => void;
}

function Line(props: LineProps) {
  const { cluster, row, position, ranked, score, age, columns, selected, fresh, onOpen } = props;
  const expired = age?.expired ?? false;
  const best = score && !expired ? bestOf(score, columns, row) : -1;
  return (
    <div
      class={(selected ? "line selected" : "line") + fresh}
      role="row"
      id={`row-${row}`}
      aria-rowindex={position + 2}
      style={{ transform: `translateY(${position * ROW_HEIGHT}px)` }}
      onClick={() => onOpen(cluster.name)}
    >
      <span role="gridcell" class="value rank">
        {ranked && best >= 0 ? position + 1 : ""}
      </span>
      <span role="rowheader" title={cluster.name}>
        {cluster.name}
      </span>
      {columns.map((column, at) => {
        const value = column.values[row] ?? null;
        const kind = expired ? " expired" : at === best && columns.length > 1 ? " best" : "";
        return (
          <span
            key={titleOf(column)}
            role="gridcell"
            class={`value${kind}`}
            title={expired ? "expired: placement does not use it" : undefined}
            style={{ background: score && !expired ? tint(value, score) : undefined }}
          >
            {shown(value)}
          </span>
        );
      })}
      <span role="gridcell" class={age?.late ? "bad" : ""} title={age ? ageTold(age) : undefined}>
        {age ? ageBriefly(age) : "–"}
      </span>
      <State cluster={cluster} />
      {props.policies && (
        <span role="gridcell" title={policies(cluster) || "No plan enforces a policy here"}>
          {policies(cluster) || "none"}
        </span>
      )}
      <span role="gridcell" title={workloads(cluster)}>
        {workloads(cluster) || "none"}
      </span>
    </div>
  );
}

function ageBriefly({ age, expired, late }: Age): string {
  const old = age === null ? "unknown" : duration(Math.max(0, age));
  return late ? `${old}, ${expired ? "expired" : "late"}` : old;
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
  const visible = box.clientHeight - HEAD_HEIGHT;
  if (from < box.scrollTop) box.scrollTop = from;
  else if (to > box.scrollTop + visible) box.scrollTop = to - visible;
}
