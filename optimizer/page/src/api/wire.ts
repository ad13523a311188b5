/**
 * What the optimizer answers, as far as the page reads it. The names are those of its OpenAPI document.
 * Texts in it were written by others: they are shown as text, never as markup.
 */

export type Direction = "HigherIsBetter" | "LowerIsBetter";

export interface Finding {
  stage: string;
  name: string;
  reason: string;
  message: string;
  next: string;
}

export interface FleetCluster {
  name: string;
  eligible: boolean;
  obstacles: { reason: string; message: string; since: string | null }[];
  health: "Available" | "Unavailable" | "Unknown";
  hardware: Record<string, string>;
  claim: string;
  enforced: { policy: string; compliance: string }[];
  running: { workload: string; state: string; message: string; since: string | null }[];
}

/** Values of one app on one device; `values` follows the order of the fleet's clusters. */
export interface ScoreColumn {
  app: string;
  device: string;
  entry: string;
  values: (number | null)[];
}

/** One score over the fleet; lists follow the order of the fleet's clusters, times are Unix seconds. */
export interface FleetScore {
  name: string;
  scorer: string;
  display_name: string;
  description: string;
  unit: string;
  direction: Direction | null;
  minimum: number | null;
  maximum: number | null;
  mean: (number | null)[];
  written: (number | null)[];
  valid_until: (number | null)[];
  expired: number[];
  columns: ScoreColumn[];
  omitted_columns: number;
}

export interface FleetWorkload {
  name: string;
  app: string;
  requests: string;
  places: Record<string, string>;
  replicas: number;
  unplaced: string;
}

export interface Scorer {
  name: string;
  score: string;
  display_name: string;
  description: string;
  health: string;
  reason: string;
  message: string;
  clusters: Record<string, number>;
  failing: { cluster: string; reason: string; message: string }[];
  working: boolean;
  remedy: string;
}

/** The answer of GET /fleet. */
export interface Fleet {
  observed_at: string;
  namespace: string;
  clusters: FleetCluster[];
  scores: FleetScore[];
  workloads: FleetWorkload[];
  policies: string[];
  scorers: Scorer[];
  findings: Finding[];
  omitted: Record<string, number>;
}

export interface Assignment {
  workload: string;
  cluster: string;
  device: string;
}

export interface Loss {
  total: number;
}

/** The least that must change so that a workload has a place. */
export interface Remedy {
  changes: { message: string; size: number }[];
  losing: string[];
}

export interface Explanation {
  places: (Assignment & {
    policy: string;
    score: number;
    runner_up: { cluster: string; device: string; score: number } | null;
    margin: Loss | null;
    at_most: Loss | null;
    instead: Assignment[];
  })[];
  unplaced: {
    workload: string;
    message: string;
    limits: { rule: string; message: string }[];
    remedy: Remedy | null;
  }[];
  why_not: { asked: string; possible: boolean | null; message: string; lost: Loss | null }[];
  not_computed: string[];
}

export interface Change {
  kind: string;
  namespace: string;
  name: string;
  action: "create" | "patch" | "delete";
}

/** What a plan does to a workload. */
export interface Move {
  workload: string;
  action: "starts" | "moves" | "stays" | "shrinks" | "stops" | "waits";
  before: { cluster: string; device: string }[];
  after: { cluster: string; device: string }[];
  gain: Record<string, number>;
  uncovered: boolean;
  why: string;
}

/** The answer of POST /optimize and of POST /plan. */
export interface Plan {
  status: string;
  objective_value: number;
  digest: string;
  bound: number | null;
  gap: number | null;
  /** null: not told. */
  seconds: number | null;
  moves: Move[];
  enforcement_changes: { cluster: string; before: string[]; after: string[] }[];
  unplaced: { workload: string; reason: string; message: string }[];
  gaps: { reason: string; message: string }[];
  changes: Change[];
  applied: boolean;
  record: string;
  explanation?: Explanation | null;
}

/** A line of GET /plans. */
export interface PlanSummary {
  name: string;
  optimization: string;
  revision: number;
  digest: string;
  requested_by: string;
  created: string | null;
  phase: string;
  reason: string;
  message: string;
  solver_failure: string;
  objective: number;
  restored_revision: number | null;
  created_objects: number;
  patched_objects: number;
  deleted_objects: number;
}

/** The answer of GET /plans/{digest}. */
export interface PlanRecord extends PlanSummary {
  request: PlanRequest;
  policies: { cluster: string; policy: string }[];
  assignments: Assignment[];
}

/** The body of POST /optimize; the page passes it on without looking into the rest. */
export interface PlanRequest {
  namespace: string;
  targetWorkloads?: { name: string }[];
  [field: string]: unknown;
}

export type StepActions = Record<"start" | "stop", { workload: string; cluster: string }[]> &
  Record<"enforce" | "release", { cluster: string; policy: string }[]>;

export interface Rollout {
  namespace: string;
  optimization: string;
  phase: "Progressing" | "Complete" | "TurnedBack" | "Cancelled";
  paused: boolean;
  turning_back: boolean;
  step: number;
  steps: StepActions[];
  waiting_for: { reason: string; message: string; since: string | null }[];
  reason: string;
  message: string;
}

export type RolloutCommand = "pause" | "resume" | "undo" | "cancel";

/** RFC 9457. */
export interface Problem {
  title: string;
  status: number;
  detail: string;
  reason?: string;
}
