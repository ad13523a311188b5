import type { Fleet, FleetScore, ScoreColumn } from "../api/wire";
import { byNaturalOrder } from "../parts/natural-order";

/** What the matrix shows, and in which order. */
export interface MatrixView {
  score: string;
  /** Only columns of this app; empty: all. */
  app: string;
  /** Only clusters whose name, policies or workloads contain this. */
  filter: string;
  /** Column to sort by: `name`, or the position of a score's column. */
  sort: "name" | number;
}

/** A row: a cluster by its position in the fleet. */
export type Row = number;

/** The chosen score; the first one if the fleet no longer has it. */
export function chosenScore(fleet: Fleet, view: MatrixView): FleetScore | undefined {
  return fleet.scores.find((score) => score.name === view.score) ?? fleet.scores[0];
}

/** The chosen score's columns of the chosen app. */
export function chosenColumns(score: FleetScore | undefined, view: MatrixView): ScoreColumn[] {
  const chosen = (score?.columns ?? []).filter((column) => !view.app || column.app === view.app);
  return chosen.sort((one, other) => byNaturalOrder(titleOf(one), titleOf(other)));
}

/** What a column is called. */
export function titleOf(column: ScoreColumn): string {
  return column.entry || [column.app, column.device].filter(Boolean).join(" ") || "score";
}

/** The apps that a score knows, by name. */
export function appsOf(score: FleetScore | undefined): string[] {
  const apps = (score?.columns ?? []).map((column) => column.app);
  return [...new Set(apps.filter(Boolean))].sort(byNaturalOrder);
}

/** The rows that the filter leaves, in the order of the sorted column: the best first. */
export function rows(fleet: Fleet, view: MatrixView): Row[] {
  const wanted = view.filter.trim().toLowerCase();
  const kept = fleet.clusters.map((_, row) => row).filter((row) => matches(fleet, row, wanted));
  if (view.sort === "name") {
    const name = (row: Row) => fleet.clusters[row]?.name ?? "";
    return kept.sort((one, other) => byNaturalOrder(name(one), name(other)));
  }
  const score = chosenScore(fleet, view);
  const values = chosenColumns(score, view)[view.sort]?.values ?? [];
  const sign = score?.direction === "LowerIsBetter" ? 1 : -1;
  return kept.sort((one, other) => {
    const [first, second] = [values[one] ?? null, values[other] ?? null];
    if (first === null || second === null) return Number(first === null) - Number(second === null);
    return sign * (first - second);
  });
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
