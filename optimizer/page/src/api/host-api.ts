import type { App } from "@modelcontextprotocol/ext-apps";
import {
  ApiProblem,
  problemOf,
  questionOf,
  type OptimizerApi,
  type ShownPlan,
  type Wish,
} from "./optimizer-api";
import type * as wire from "./wire";

/** Milliseconds that an answer may take: a plan of a large fleet takes a minute. */
const ANSWER = 120_000;

/** Milliseconds that a write may take: the chat may ask its user first, as long as a plan stays approved. */
const APPROVAL = 900_000;

const READ_ONLY =
  "This MCP server is read-only: start it with --allow-writes to apply plans from the chat.";

const NO_HISTORY: wire.Problem = {
  title: "A chat has no history of scores",
  status: 0,
  detail: "The optimizer's own page has it, where a Prometheus is configured.",
};

/** The result of the tool plan_placement, as far as the page reads it. */
export interface ToolPlan {
  digest: string;
  applicable: boolean;
  status: wire.Plan["status"];
  objective_value: number;
  bound: number | null;
  moves: wire.Move[];
  enforcement_changes: wire.Plan["enforcement_changes"];
  issues: wire.Plan["gaps"];
}

interface Answer {
  answer: unknown;
  tag: string;
  read_only: boolean;
  age_seconds?: number;
}

/** The optimizer behind the MCP server of a chat; the chat's host passes each call on. */
export class HostApi implements OptimizerApi {
  #tag = "";
  #readOnly = false;

  constructor(readonly app: App) {}

  async fleet(namespace: string) {
    const question = { of: "fleet", namespace, tag: this.#tag };
    const { answer, tag, age_seconds } = await this.#data(question);
    this.#tag = tag;
    return { fleet: answer as wire.Fleet | null, age: age_seconds ?? 0 };
  }

  async plan(namespace: string, wish: Wish) {
    return this.#plan({ of: "plan", request: questionOf(namespace, wish) });
  }

  /** The whole plan of a tool's result; what the result contains if the plan can't be made again. */
  async shown(told: ToolPlan): Promise<ShownPlan> {
    let hindrance = "";
    try {
      if (told.applicable) return await this.#plan({ of: "shownPlan", digest: told.digest });
    } catch (thrown) {
      hindrance = problemOf(thrown).detail;
    }
    const unknown = { gap: null, seconds: null, changes: [], layouts: [], gpus_after: [] };
    const rest = { ...unknown, applied: false, record: "" };
    const unplaced = told.moves
      .filter((move) => move.after.length === 0)
      .map((move) => ({ workload: move.workload, reason: move.action, message: move.why }));
    return { ...told, ...rest, gaps: told.issues, unplaced, request: null, hindrance };
  }

  async explain(request: wire.PlanRequest, asked: Partial<wire.PlanRequest>) {
    const { answer } = await this.#data({ of: "explanation", request: { ...request, ...asked } });
    return answer as wire.Plan;
  }

  apply(shown: ShownPlan) {
    return this.#applied(shown);
  }

  async plans(namespace: string) {
    const { answer } = await this.#data({ of: "list_plans", namespace });
    return (answer as { items: wire.PlanSummary[] }).items;
  }

  async record(namespace: string, digest: string) {
    return (await this.#data({ of: "show_plan", namespace, digest })).answer as wire.PlanRecord;
  }

  async rollback(record: wire.PlanSummary, namespace: string, shownDigest?: string) {
    const { optimization, revision } = record;
    const request = { namespace, optimization, toRevision: revision, dryRun: true };
    const plan = (await this.#data({ of: "rollback", request })).answer as wire.Plan;
    if (!shownDigest) return plan;
    return this.#applied({ ...plan, digest: shownDigest });
  }

  async rollouts(namespace: string) {
    const { answer } = await this.#data({ of: "list_rollouts", namespace });
    return (answer as { items: wire.Rollout[] }).items;
  }

  async command(rollout: wire.Rollout, command: wire.RolloutCommand) {
    const { namespace, optimization } = rollout;
    await this.#write("change_rollout", { action: command, namespace, optimization });
    const all = await this.rollouts(namespace);
    return all.find((item) => item.optimization === optimization) ?? rollout;
  }

  async kept(namespace: string) {
    const { answer } = await this.#data({ of: "list_optimizations", namespace });
    return (answer as { items: wire.Kept[] }).items;
  }

  async waitingPlan({ namespace, name }: wire.Kept) {
    const question = { of: "show_waiting_plan", namespace, optimization: name };
    return (await this.#data(question)).answer as wire.Plan;
  }

  async approve({ namespace, name, waiting }: wire.Kept) {
    await this.#write("approve_kept_plan", { namespace, name, digest: waiting });
    const all = await this.kept(namespace);
    return all.find((item) => item.name === name)!;
  }

  async history(): Promise<never> {
    throw new ApiProblem(NO_HISTORY);
  }

  async scorers(): Promise<never> {
    throw new ApiProblem(NO_HISTORY);
  }

  async #plan(question: object): Promise<ShownPlan> {
    const { answer, read_only } = await this.#data(question);
    return { ...(answer as ShownPlan), hindrance: read_only ? READ_ONLY : "" };
  }

  async #applied<T extends wire.Plan>(plan: T): Promise<T> {
    const done = await this.#write("apply_plan", { digest: plan.digest });
    return { ...plan, applied: true, record: (done as { record: string }).record };
  }

  async #data(question: object): Promise<Answer> {
    const found = (await this.#call("page_data", { question }, ANSWER)) as Answer;
    this.#readOnly = found.read_only;
    return found;
  }

  async #write(name: string, given: Record<string, unknown>): Promise<unknown> {
    if (this.#readOnly) {
      throw new ApiProblem({ title: "Nothing was written", status: 403, detail: READ_ONLY });
    }
    return this.#call(name, given, APPROVAL);
  }

  async #call(name: string, given: Record<string, unknown>, timeout: number): Promise<unknown> {
    let result;
    try {
      result = await this.app.callServerTool({ name, arguments: given }, { timeout });
    } catch (thrown) {
      throw new ApiProblem({
        title: "The chat does not answer",
        status: 0,
        detail: `${thrown instanceof Error ? thrown.message : thrown}. What you see was read before.`,
      });
    }
    if (!result.isError) return result.structuredContent;
    const said = result.content.map((part) => (part.type === "text" ? part.text : "")).join("\n");
    throw new ApiProblem({ title: "The optimizer refused", status: 0, detail: said });
  }
}
