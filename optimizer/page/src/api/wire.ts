/**
 * What the optimizer answers: types of its OpenAPI document, which `make types` writes to openapi.ts,
 * under the names that the page has for them.
 * Texts in it were written by others: they are shown as text, never as markup.
 */

import type {
  HistorySeries,
  OptimizeRequest,
  OptimizeResult,
  PlanRecord as DescribedRecord,
  ProblemDetails,
  ScoreHistory as DescribedHistory,
  ScorerHistories as DescribedHistories,
  ScorerHistory as DescribedScorer,
} from "./openapi";

export type {
  AssignmentRef as Assignment,
  Explanation,
  KeptOptimization as Kept,
  FleetMatrix as Fleet,
  ClusterGpus as GpuGroup,
  GpuLayout,
  OccupiedDevice as Occupied,
  MatrixCluster as FleetCluster,
  MatrixColumn as ScoreColumn,
  MatrixFinding as Finding,
  MatrixScore as FleetScore,
  MatrixScorer as Scorer,
  MatrixWorkload as FleetWorkload,
  ObjectiveLoss as Loss,
  ResourceCapacity,
  PlannedChange as Change,
  PlanSummary,
  Repair as Remedy,
  RolloutStatus as Rollout,
  StepSpan,
  StepActions,
  WorkloadMove as Move,
} from "./openapi";

/** The answer of POST /optimize and of POST /plan, as far as a chat can show it, too. */
export type Plan = Pick<
  OptimizeResult,
  | "status"
  | "objective_value"
  | "bound"
  | "gap"
  | "digest"
  | "moves"
  | "enforcement_changes"
  | "layouts"
  | "gpus_after"
  | "unplaced"
  | "gaps"
  | "changes"
  | "applied"
  | "record"
> & {
  /** null: not told. */
  seconds: number | null;
  explanation?: OptimizeResult["explanation"];
  rollout_steps?: OptimizeResult["rollout_steps"];
};

/** The body of POST /optimize; the page passes it on without looking into the rest. */
export type PlanRequest = Pick<OptimizeRequest, "namespace"> & {
  targetWorkloads?: { name: string }[];
  [field: string]: unknown;
};

/** The answer of GET /plans/{digest}. */
export type PlanRecord = Omit<DescribedRecord, "request"> & { request: PlanRequest };

/** Unix seconds and a value. */
type Points = [number, number | null][];

type Drawn<T, Curves extends keyof T> = Omit<T, Curves> & Record<Curves, Points>;

/** The answer of GET /scores/history. */
export type ScoreHistory = Omit<DescribedHistory, "series"> & {
  series: Drawn<HistorySeries, "points" | "low" | "high">[];
};

/** The curves of a scorer over all clusters. */
export type ScorerHistory = Drawn<
  DescribedScorer,
  "median" | "low" | "high" | "age" | "failed" | "latency" | "skill"
>;

/** The answer of GET /scorers/history. */
export type ScorerHistories = Omit<DescribedHistories, "scorers"> & { scorers: ScorerHistory[] };

export type RolloutCommand = "pause" | "resume" | "undo" | "cancel";

/** RFC 9457; `reason` is missing if the optimizer can't be reached. */
export type Problem = Pick<ProblemDetails, "title" | "status" | "detail"> &
  Partial<Pick<ProblemDetails, "reason">>;
