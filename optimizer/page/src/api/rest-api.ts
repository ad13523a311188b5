import {
  ApiProblem,
  questionOf,
  type OptimizerApi,
  type ShownPlan,
  type Tell,
  type Wish,
} from "./optimizer-api";
import type * as wire from "./wire";

const UNREACHABLE: wire.Problem = {
  title: "The optimizer does not answer",
  status: 0,
  detail: "What you see is what it answered last. The page asks again by itself.",
};

const EVENTS = "text/event-stream";

/** Milliseconds that a read may take, so that a connection that drops packets is noticed. */
const READ = 60_000;

/** The optimizer's REST API on the page's own origin. The token stays in memory only. */
export class RestApi implements OptimizerApi {
  token = "";
  #tag = "";

  async fleet(namespace: string) {
    const path = `/fleet?${new URLSearchParams({ namespace })}`;
    const answer = await this.#send(path, {
      headers: this.#tag ? { "If-None-Match": this.#tag } : {},
    });
    const age = Number(answer.headers.get("Age") ?? 0);
    if (answer.status === 304) return { fleet: null, age };
    this.#tag = answer.headers.get("ETag") ?? "";
    return { fleet: (await answer.json()) as wire.Fleet, age };
  }

  async follow(namespace: string, signal: AbortSignal, tell: () => void, alive: () => void) {
    const path = `/fleet/events?${new URLSearchParams({ namespace })}`;
    const answer = await this.#send(path, { headers: { Accept: EVENTS }, signal });
    for await (const { data } of events(answer, alive)) {
      if ((data as { etag: string }).etag !== this.#tag) tell();
    }
  }

  async plan(namespace: string, wish: Wish, tell: Tell, signal?: AbortSignal) {
    const answer = await this.#send("/plan", {
      method: "POST",
      signal: signal ?? null,
      headers: { "Content-Type": "application/json", Accept: `application/json, ${EVENTS}` },
      body: JSON.stringify(questionOf(namespace, wish)),
    });
    return answer.headers.get("Content-Type")?.startsWith(EVENTS)
      ? planIn(answer, tell)
      : ((await answer.json()) as ShownPlan);
  }

  explain(request: wire.PlanRequest, asked: Partial<wire.PlanRequest>, signal?: AbortSignal) {
    return this.#post<wire.Plan>("/optimize?dry_run=true", { ...request, ...asked }, signal);
  }

  apply(shown: ShownPlan) {
    return this.#post<wire.Plan>(`/optimize?expected_digest=${shown.digest}`, shown.request);
  }

  async plans(namespace: string) {
    const found = await this.#get<{ items: wire.PlanSummary[] }>("/plans", { namespace });
    return found.items;
  }

  record(namespace: string, digest: string) {
    return this.#get<wire.PlanRecord>(`/plans/${encodeURIComponent(digest)}`, { namespace });
  }

  rollback(record: wire.PlanSummary, namespace: string, shownDigest?: string) {
    const { optimization, revision } = record;
    const body = { namespace, optimization, toRevision: revision, dryRun: !shownDigest };
    const query = shownDigest ? `?expected_digest=${shownDigest}` : "";
    return this.#post<wire.Plan>(`/rollback${query}`, body);
  }

  async rollouts(namespace: string) {
    return (await this.#get<{ items: wire.Rollout[] }>("/rollouts", { namespace })).items;
  }

  command(rollout: wire.Rollout, command: wire.RolloutCommand) {
    const where = [rollout.namespace, rollout.optimization, command].map(encodeURIComponent);
    return this.#post<wire.Rollout>(`/rollouts/${where.join("/")}`, undefined);
  }

  async kept(namespace: string) {
    const found = await this.#get<{ items: wire.Kept[] }>("/placementoptimizations", { namespace });
    return found.items;
  }

  waitingPlan(kept: wire.Kept) {
    return this.#get<wire.Plan>(`${pathOf(kept)}/plan`, {});
  }

  approve(kept: wire.Kept) {
    return this.#post<wire.Kept>(`${pathOf(kept)}/approve?digest=${kept.waiting}`, undefined);
  }

  history(score: string, cluster: string, hours: number, app: string) {
    const where = { ...(cluster ? { cluster } : {}), ...(app ? { app } : {}) };
    const query = { score, ...where, hours: String(hours) };
    return this.#get<wire.ScoreHistory>("/scores/history", query);
  }

  scorers(hours: number) {
    return this.#get<wire.ScorerHistories>("/scorers/history", { hours: String(hours) });
  }

  async #get<T>(path: string, query: Record<string, string>): Promise<T> {
    return (await this.#send(`${path}?${new URLSearchParams(query)}`, {})).json();
  }

  async #post<T>(path: string, body: unknown, signal: AbortSignal | null = null): Promise<T> {
    const headers = { "Content-Type": "application/json" };
    const sent = body === undefined ? {} : { headers, body: JSON.stringify(body) };
    return (await this.#send(path, { method: "POST", signal, ...sent })).json();
  }

  async #send(path: string, options: RequestInit): Promise<Response> {
    const headers = new Headers(options.headers);
    if (this.token) headers.set("Authorization", `Bearer ${this.token}`);
    const signal = options.signal ?? (options.method ? null : AbortSignal.timeout(READ));
    let answer: Response;
    try {
      answer = await fetch(path, { ...options, headers, signal });
    } catch {
      throw new ApiProblem(UNREACHABLE);
    }
    if (answer.ok || answer.status === 304) return answer;
    throw new ApiProblem(await problemIn(answer));
  }
}

function pathOf({ namespace, name }: wire.Kept): string {
  const where = [namespace, name].map(encodeURIComponent).join("/");
  return `/placementoptimizations/${where}`;
}

/** The plan at the end of a stream of events; `tell` hears how far it is. */
async function planIn(answer: Response, tell: Tell): Promise<ShownPlan> {
  for await (const { name, data } of events(answer)) {
    if (name === "result") return data as ShownPlan;
    if (name === "problem") throw new ApiProblem(data as wire.Problem);
    tell((data as { message: string }).message);
  }
  throw new ApiProblem(UNREACHABLE);
}

/** The events of a stream; `alive` is called for all that comes, comments included. */
async function* events(answer: Response, alive = () => {}) {
  let text = "";
  try {
    for await (const part of parts(answer)) {
      alive();
      const blocks = (text + part).split("\n\n");
      text = blocks.pop() ?? "";
      for (const block of blocks.filter((one) => !one.startsWith(":"))) {
        const [name, data] = block.split("\n").map((line) => line.slice(line.indexOf(": ") + 2));
        yield { name, data: JSON.parse(data ?? "null") as unknown };
      }
    }
  } catch (thrown) {
    throw thrown instanceof ApiProblem ? thrown : new ApiProblem(UNREACHABLE);
  }
}

async function* parts(answer: Response) {
  const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
  for (let part = await reader.read(); !part.done; part = await reader.read()) yield part.value;
}

/** The problem details of an answer; what stands before the optimizer may send other errors. */
async function problemIn(answer: Response): Promise<wire.Problem> {
  const said = answer.headers.get("Content-Type")?.includes("application/problem+json");
  if (said) return (await answer.json()) as wire.Problem;
  const { status, statusText } = answer;
  return { title: `HTTP ${status} ${statusText}`, status, detail: "" };
}
