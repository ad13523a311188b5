import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { figure } from "../parts/sentences";
import { Table } from "../parts/table";
import { useSize } from "../parts/use-size";
import "./curve.css";
import { aligned, isolated, moment, summary, tick, type Aligned, type Line } from "./curve-lines";

/** Colours of lines, of the style sheet. */
const HUES = 8;

/** Rows of the table behind a curve, the newest. */
const MAX_ROWS = 200;

/** Below this number of positions each value has a dot. */
const FEW = 60;

interface Props {
  /** What the curve shows: its title. */
  label: string;
  lines: Line[];
  /** A value with its unit. */
  say?: (value: number) => string;
  /** Positions are numbers of plans and the like; missing: they are Unix seconds. */
  nameOf?: (position: number) => string;
  /** First and last position, so that nothing at the edges is a hole, too. */
  range?: [number, number];
  height?: number;
  /** What its axes tell: the positions, and the values. */
  axes?: [string, string];
  /** Values hold until the next, as those of plans. */
  steps?: boolean;
  /** Opens what is at a position. */
  onPick?: (position: number) => void;
}

/** Lines over time. Arrow keys move along them; a table of the same is behind them. */
export function Curve(props: Props) {
  const { label, lines, say = figure } = props;
  const empty = lines.every(({ points }) => points.every(([, value]) => value === null));
  return empty ? <p>{summary(label, lines, say)}</p> : <Plotted {...props} />;
}

function Plotted(props: Props) {
  const { label, lines, say = figure, nameOf = moment, onPick } = props;
  const data = useMemo(() => aligned(lines), [lines]);
  const [place, plot, at, setAt] = usePlot(data, props);
  const stops = useMemo(() => stopsOf(data, props.nameOf), [data]);
  const last = stops.length - 1;
  const under = at === null ? last : stops.findIndex((index) => index >= at);
  const stop = under < 0 ? last : under;
  const shown = stops[stop] ?? 0;
  const move = (to: number) => {
    const index = stops[Math.max(0, Math.min(to, last))]!;
    setAt(index);
    plot.current?.setCursor({ left: plot.current.valToPos(data.at[index] ?? 0, "x"), top: -10 });
  };
  const keys: Record<string, () => void> = {
    ArrowLeft: () => move(stop - 1),
    ArrowRight: () => move(stop + 1),
    PageDown: () => move(stop - 10),
    PageUp: () => move(stop + 10),
    Home: () => move(0),
    End: () => move(last),
    Enter: () => onPick?.(data.at[shown]!),
  };
  const when = nameOf(data.at[shown]!);
  return (
    <figure class="curve">
      <strong aria-hidden="true">{label}</strong>
      <div
        ref={place}
        class={onPick ? "plot picked" : "plot"}
        role="slider"
        tabIndex={0}
        aria-label={summary(label, lines, say)}
        aria-valuemin={0}
        aria-valuemax={last}
        aria-valuenow={stop}
        aria-valuetext={`${when}: ${lines.map((_, line) => told(data, line, shown, lines, say)).join(", ")}`}
        onClick={() => at !== null && onPick?.(data.at[shown]!)}
        onKeyDown={(event) => {
          const key = keys[event.key];
          if (!key) return;
          event.preventDefault();
          key();
        }}
      />
      <figcaption>
        <span class="when">{when}</span>
        <ul class="lines">
          {lines.map((line, order) => (
            <li key={line.name} class={`hue-${order % HUES}`}>
              {told(data, order, shown, lines, say)}
            </li>
          ))}
        </ul>
      </figcaption>
      <Values label={label} data={data} stops={stops} lines={lines} say={say} nameOf={nameOf} />
    </figure>
  );
}

/** A line over time without axes, for panels that are compared. It is told in words. */
export function Sparkline(props: Pick<Props, "label" | "lines" | "say" | "range">) {
  const data = useMemo(() => aligned(props.lines), [props.lines]);
  const [place] = usePlot(data, { ...props, height: 44 }, true);
  const told = summary(props.label, props.lines, props.say ?? figure);
  return <div ref={place} class="plot" role="img" aria-label={told} title={told} />;
}

/** Indexes of positions to stop at: of numbered things those between two only break a line. */
function stopsOf({ at }: Aligned, nameOf: Props["nameOf"]): number[] {
  return at.flatMap((position, index) => (nameOf && !Number.isInteger(position) ? [] : [index]));
}

/** The name and value of a line at a position, with the edges of its band. */
function told(
  { lines: columns }: Aligned,
  order: number,
  at: number,
  lines: Line[],
  say: (value: number) => string,
): string {
  const { name, lowName, highName } = lines[order]!;
  const { middle, low, high } = columns[order]!;
  const value = middle[at] ?? null;
  const edges = [low[at] ?? null, high[at] ?? null];
  const [from, to] = edges;
  const band =
    from !== null && from !== undefined && to !== null && to !== undefined
      ? ` (${lowName} ${say(from)}, ${highName} ${say(to)})`
      : "";
  return `${name} ${value === null ? "none" : say(value)}${band}`.trim();
}

function Values(props: {
  label: string;
  data: Aligned;
  stops: number[];
  lines: Line[];
  say: (value: number) => string;
  nameOf: (position: number) => string;
}) {
  const { label, data, stops, lines, say, nameOf } = props;
  const [open, setOpen] = useState(false);
  const rows = stops.map((at) => ({
    key: String(data.at[at]),
    cells: [nameOf(data.at[at]!), ...lines.map((_, line) => cell(data, line, at, say))],
  }));
  return (
    <details class="values" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>As a table</summary>
      {open && (
        <Table
          caption={label}
          heads={["At", ...lines.map((line) => line.name || "Value")]}
          rows={rows.slice(-MAX_ROWS).reverse()}
        />
      )}
    </details>
  );
}

function cell(data: Aligned, line: number, at: number, say: (value: number) => string): string {
  const { middle, low, high } = data.lines[line]!;
  const [value, from, to] = [middle[at], low[at], high[at]].map((it) => it ?? null);
  if (value === null || value === undefined) return "none";
  const band = from === null || to === null ? "" : ` (${say(from!)} to ${say(to!)})`;
  return say(value) + band;
}

/** Draws into an element as wide as its place; the index under the pointer is that of a position. */
function usePlot(data: Aligned, props: Props | Parameters<typeof Sparkline>[0], bare = false) {
  const [place, width] = useSize<HTMLDivElement>();
  const height = (props as Props).height ?? 180;
  const plot = useRef<uPlot | null>(null);
  const [at, setAt] = useState<number | null>(null);
  useEffect(() => {
    const element = place.current;
    if (!element || data.at.length === 0) return;
    const whole = props as Props;
    const options = plotOptions(element, data, whole, bare, (index) => setAt(index));
    const columns = data.lines.flatMap(({ middle, low, high }) => [low, high, middle]);
    const size = { width: element.clientWidth, height };
    const made = new uPlot({ ...options, ...size }, [data.at, ...columns], element);
    plot.current = made;
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const redraw = () => made.redraw(false);
    dark.addEventListener("change", redraw);
    return () => {
      dark.removeEventListener("change", redraw);
      made.destroy();
      plot.current = null;
    };
  }, [data]);
  useEffect(() => {
    if (width) plot.current?.setSize({ width, height });
  }, [width, height]);
  return [place, plot, at, setAt] as const;
}

function plotOptions(
  element: HTMLElement,
  data: Aligned,
  props: Props,
  bare: boolean,
  onMove: (index: number | null) => void,
): Omit<uPlot.Options, "width" | "height"> {
  const { say = figure, nameOf, range, axes, steps } = props;
  const colour = (name: string) => {
    // The canvas does not know custom properties; the element does.
    element.style.color = `var(${name})`;
    return getComputedStyle(element).color;
  };
  const hue = (order: number) => `--hue-${order % HUES}`;
  const few = data.at.length < FEW && !bare;
  const edge: uPlot.Series = { stroke: "transparent", width: 0, points: { show: false } };
  const series = data.lines.flatMap((line, order): uPlot.Series[] => [
    edge,
    edge,
    {
      stroke: () => colour(hue(order)),
      width: 1.5,
      ...(order >= HUES ? { dash: [6, 4] } : {}),
      ...(steps
        ? {
            paths: uPlot.paths.stepped!({ align: 1 }),
            // Else half of the step to the next value would be left.
            gaps: (_: uPlot, __: number, ___: number, ____: number, gaps: uPlot.Series.Gaps) =>
              gaps.map(([from, to]): [number, number] => [from, to + 1]),
          }
        : {}),
      points: {
        show: few,
        size: 5,
        fill: () => colour(hue(order)),
        filter: () => (few ? null : isolated(line.middle)),
      },
    },
  ]);
  const bands = data.lines.map((_, order): uPlot.Band => ({
    series: [3 * order + 2, 3 * order + 1],
    fill: () => colour(hue(order)).replace("rgb(", "rgba(").replace(")", ", 0.2)"),
  }));
  const font = "12px system-ui, sans-serif";
  const ruled = { stroke: () => colour("--line"), width: 1 };
  const axis: uPlot.Axis = {
    stroke: () => colour("--muted"),
    grid: ruled,
    ticks: ruled,
    font,
    show: !bare,
  };
  const named = (which: 0 | 1) =>
    axes ? { label: axes[which], labelSize: 18, labelFont: font } : {};
  const nameAt = (position: number | null) =>
    position !== null && Number.isInteger(position) ? nameOf!(position).split(",")[0]! : "";
  return {
    series: [{}, ...series],
    bands,
    scales: { x: { time: !nameOf, ...(range ? { range } : {}) } },
    axes: [
      {
        ...axis,
        ...named(0),
        space: 70,
        size: 32,
        values: (_, splits, __, ___, step) =>
          splits.map((at) => (nameOf ? nameAt(at) : tick(at, step))),
        ...(nameOf ? { incrs: [1, 2, 5, 10, 20, 50, 100] } : {}),
      },
      {
        ...axis,
        ...named(1),
        values: (_, splits) => splits.map((value) => say(value)),
        size: (_, values) => 20 + 7 * Math.max(3, ...(values ?? []).map((text) => text.length)),
      },
    ],
    legend: { show: false },
    cursor: { show: !bare, y: false, drag: { x: false, y: false } },
    // To the right of the last tick is half of its label.
    padding: bare ? [4, 2, 4, 2] : [10, 30, null, null],
    hooks: { setCursor: [(plot) => onMove(plot.cursor.idx ?? null)] },
  };
}
