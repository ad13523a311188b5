import type { Fleet, FleetScore, ScoreColumn } from "../api/wire";
import { byNaturalOrder } from "../parts/natural-order";
import { ageOf, worstFirst } from "./freshness";
import { bestFirst } from "./score-colour";

/** Which clusters are shown, and in which order. */
export interface ScoreView {
  /** Only clusters whose name, policies, workloads or obstacles contain this. */
  filter: string;
  /** `best`, `name`, `age`, or the name of a column. */
  sort: string;
}

/** A row: a cluster by its position in the fleet. */
export type Row = number;

/** Columns that are shown at most: an app has a column for each device. */
export const MAX_COLUMNS = 24;

/** Bars of a spread. */
const BARS = 24;

/** The chosen score; the first one with apps if the fleet has no such score. */
export function chosenScore(fleet: Fleet, name: string): FleetScore | undefined {
  const found = fleet.scores.find((score) => score.name === name);
  const placing = fleet.scores.find((score) => score.columns.some((column) => column.app));
  return found ?? placing ?? fleet.scores[0];
}

/** The apps that a score knows, in natural order; empty for what belongs to no app. */
export function appsOf(score: FleetScore | undefined): string[] {
  const apps = new Set((score?.columns ?? []).map((column) => column.app ?? ""));
  return [...apps].sort(
    (one, other) => Number(!one) - Number(!other) || byNaturalOrder(one, other),
  );
}

/** Texts of the scores and of apps, by name, to choose from. */
export function scoreNames({ scores }: Fleet): Record<string, string> {
  return Object.fromEntries(scores.map((item) => [item.name, item.display_name || item.name]));
}

export function appNames(apps: string[]): Record<string, string> {
  return Object.fromEntries(apps.map((name) => [name, name || "of no app"]));
}

/** The columns of an app, in the natural order of its devices. */
export function columnsOf(score: FleetScore | undefined, app: string): ScoreColumn[] {
  const found = (score?.columns ?? []).filter((column) => (column.app ?? "") === app);
  return found.sort((one, other) => byNaturalOrder(titleOf(one), titleOf(other)));
}

/** What tells a column from the others of its app. */
export function titleOf(column: ScoreColumn): string {
  return column.entry || column.device || column.app || "score";
}

/** The column that is best on a cluster, by its position; -1: the cluster has no value. */
export function bestOf(score: FleetScore, columns: ScoreColumn[], row: Row): number {
  return columns.reduce((best, column, position) => {
    const value = column.values[row] ?? null;
    const known = columns[best]?.values[row] ?? null;
    return bestFirst(score, value, known) < 0 ? position : best;
  }, -1);
}

/** The rows that the filter leaves, in the order of the sorted column: the best first. */
export function rowsOf(
  fleet: Fleet,
  score: FleetScore | undefined,
  columns: ScoreColumn[],
  view: ScoreView,
): Row[] {
  const wanted = view.filter.trim().toLowerCase();
  const kept = fleet.clusters.map((_, row) => row).filter((row) => matches(fleet, row, wanted));
  const names = (one: Row, other: Row) =>
    byNaturalOrder(fleet.clusters[one]!.name, fleet.clusters[other]!.name);
  if (view.sort === "name" || !score) return kept.sort(names);
  const expired = new Set(score.expired);
  if (view.sort === "age") {
    const ages = fleet.clusters.map((_, row) => ageOf(fleet, score, row, expired.has(row)));
    return kept.sort(
      (one, other) => worstFirst(ages[one] ?? null, ages[other] ?? null) || names(one, other),
    );
  }
  const sorted = columns.findIndex((column) => titleOf(column) === view.sort);
  const values = fleet.clusters.map((_, row) => {
    const column = columns[sorted < 0 ? bestOf(score, columns, row) : sorted];
    return expired.has(row) ? null : (column?.values[row] ?? null);
  });
  return kept.sort(
    (one, other) =>
      bestFirst(score, values[one] ?? null, values[other] ?? null) || names(one, other),
  );
}

function matches(fleet: Fleet, row: Row, wanted: string): boolean {
  const cluster = fleet.clusters[row];
  if (!cluster || !wanted) return Boolean(cluster);
  const said = [
    cluster.name,
    ...cluster.enforced.map((item) => item.policy),
    ...cluster.running.map((item) => item.workload),
    ...cluster.obstacles.map((item) => item.reason),
  ];
  return said.some((text) => text.toLowerCase().includes(wanted));
}

/** How values lie between the least and the greatest of the score. */
export interface Spread {
  least: number;
  median: number;
  greatest: number;
  /** How many values are in each of equal parts of the score's range. */
  bars: number[];
}

/** The spread of the values of clusters; null: there are none. */
export function spreadOf(score: FleetScore, all: ScoreColumn["values"]): Spread | null {
  const values = all.filter((value) => value !== null).sort((a, b) => a - b);
  const [least, greatest] = [values[0], values.at(-1)];
  if (least === undefined || greatest === undefined) return null;
  const low = Math.min(score.minimum ?? least, least);
  const range = Math.max(score.maximum ?? greatest, greatest) - low;
  const bars = new Array<number>(BARS).fill(0);
  for (const value of values) {
    const at = range ? Math.floor(((value - low) / range) * BARS) : BARS / 2;
    bars[Math.min(BARS - 1, at)]! += 1;
  }
  return { least, median: values[Math.floor((values.length - 1) / 2)]!, greatest, bars };
}
