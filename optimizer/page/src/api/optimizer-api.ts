import type { Fleet, Plan, PlanRecord, PlanRequest, PlanSummary, Problem } from "./wire";
import type { Kept, Rollout, RolloutCommand, ScoreHistory, ScorerHistories } from "./wire";

/** A managed cluster that does not exist: a copy of another one, maybe with other GPUs. */
export interface Added {
  name: string;
  like: string;
  gpus?: { product: string; count: number }[];
}

/** What somebody wants planned; the server completes it to a whole request. */
export interface Wish {
  /** Weight by score. Empty: the objective in force. */
  objective: Record<string, number>;
  /** Whose objective is in force, and whose plan it is; missing: that of the default one. */
  optimization?: string;
  /** Managed clusters that are gone. */
  lose: string[];
  /** Managed clusters that no workload may use. */
  drain: string[];
  add: Added[];
  /** The most that a score may sum up to, by score. */
  budget: Record<string, number>;
  /** Whether solving goes on until the plan is proven best, or the time is over. */
  prove: boolean;
  /** Whether applying goes step by step, each step when the one before it is in force. */
  stepwise: boolean;
}

/** The question that a wish asks of POST /plan. */
export function questionOf(namespace: string, wish: Wish) {
  const { objective, optimization, prove, stepwise, ...whatIf } = wish;
  const how = { ...(prove && { gap: 0 }), ...(stepwise && { rollout: "Stepwise" }) };
  const request = { ...how, ...(optimization && { optimization }) };
  return { namespace, objective, whatIf, request };
}

/** A plan that was computed and not applied; without a request it can't be, because it pretends facts. */
export interface ShownPlan extends Plan {
  request: PlanRequest | null;
  /** Where the objective is from, if the question says none. */
  objective_from?: { message: string; scores: Record<string, number> } | null;
  /** Why the reader can't apply it here, and what to do; empty or missing: nothing is known to hinder. */
  hindrance?: string;
}

/** Hears one line of progress, in words. */
export type Tell = (line: string) => void;

/** The fleet, null if it has not changed since the last call, and how many seconds old it may be. */
export interface FleetAnswer {
  fleet: Fleet | null;
  age: number;
}

/** The optimizer, by REST in a browser and through the host's MCP tools in a chat. */
export interface OptimizerApi {
  fleet(namespace: string): Promise<FleetAnswer>;
  /**
   * Calls `tell` when the fleet has changed, and `alive` whenever the optimizer says anything, until the stream ends or `signal` says so. Missing where there is no such stream.
   */
  follow?(
    namespace: string,
    signal: AbortSignal,
    tell: () => void,
    alive: () => void,
  ): Promise<void>;
  /** `tell` hears how far a plan is that takes its time; `signal` says that nobody waits for it any more. */
  plan(namespace: string, wish: Wish, tell: Tell, signal?: AbortSignal): Promise<ShownPlan>;
  /** Plans a recorded request again and explains what `asked` says of it. */
  explain(request: PlanRequest, asked: Partial<PlanRequest>, signal?: AbortSignal): Promise<Plan>;
  /** Applies exactly what was shown, or is refused. */
  apply(shown: ShownPlan): Promise<Plan>;
  plans(namespace: string): Promise<PlanSummary[]>;
  record(namespace: string, digest: string): Promise<PlanRecord>;
  /** Shows what restoring a plan would do; with the digest of what was shown, does it. */
  rollback(record: PlanSummary, namespace: string, shownDigest?: string): Promise<Plan>;
  rollouts(namespace: string): Promise<Rollout[]>;
  command(rollout: Rollout, command: RolloutCommand): Promise<Rollout>;
  /** What is kept placed by itself. */
  kept(namespace: string): Promise<Kept[]>;
  /** The plan that waits for an approval. */
  waitingPlan(kept: Kept): Promise<Plan>;
  /** Approves the plan that waits, as it was shown, or is refused. */
  approve(shown: Kept): Promise<Kept>;
  /** A score over time; an empty cluster or app stands for all of them. */
  history(score: string, cluster: string, hours: number, app: string): Promise<ScoreHistory>;
  /** How the scorers did over the last hours. */
  scorers(hours: number): Promise<ScorerHistories>;
}

/** An answer that is not a result. `title` says what is wrong, `detail` where and what to do. */
export class ApiProblem extends Error {
  constructor(readonly problem: Problem) {
    super(problem.detail || problem.title);
  }
}

/** The problem behind whatever was thrown. */
export function problemOf(thrown: unknown): Problem {
  if (thrown instanceof ApiProblem) return thrown.problem;
  const detail = thrown instanceof Error ? thrown.message : String(thrown);
  return { title: "The page met something unexpected", status: 0, detail };
}
