import type { OptimizerApi } from "../api/optimizer-api";
import type { Fleet, PlanSummary } from "../api/wire";
import { Ago } from "../parts/ago";
import { Link } from "../parts/link";
import { counted, figure } from "../parts/sentences";
import { ago } from "../parts/times";
import { useLoaded } from "../parts/use-call";

const DAY = 86_400;

/** Optimizations that there is place for. */
const LINES = 2;

/** What the plans of the last day changed, in a line for each optimization. */
export function SinceYesterday({ api, fleet }: { api: OptimizerApi; fleet: Fleet }) {
  const call = useLoaded(() => api.plans(fleet.namespace), [api, fleet]);
  if (call.problem) return <p>Since yesterday: {call.problem.detail || call.problem.title}</p>;
  const now = Date.parse(fleet.observed_at) / 1000;
  return (
    <>
      {changesOf(call.answer ?? [], now)
        .slice(0, LINES)
        .map(({ plan, began, told }) => (
          <p key={plan.optimization}>
            <Link to={{ view: "plans", plan: plan.name }}>
              {began ? (
                <Ago time={began.created!} told={recordedSince(began)} />
              ) : (
                "Since yesterday"
              )}
            </Link>
            : {told}
          </p>
        ))}
    </>
  );
}

/** By optimization, the newest applied plan, how it differs from the one in force a day ago, and the first plan where there was none. */
export function changesOf(plans: PlanSummary[], now: number) {
  const applied = plans
    .filter(({ phase, created }) => created && (phase === "Applied" || phase === "Superseded"))
    .sort((one, other) => secondsOf(other) - secondsOf(one));
  const names = [...new Set(applied.map(({ optimization }) => optimization))];
  return names.map((name) => {
    const own = applied.filter(({ optimization }) => optimization === name);
    const made = own.filter((plan) => secondsOf(plan) > now - DAY);
    const before = own[made.length];
    const [plan, first] = [own[0]!, before ?? made.at(-1)!];
    const of = names.length > 1 ? ` by ${name}` : "";
    return { plan, began: before ? null : first, told: `${told(plan, made, first)}${of}` };
  });
}

/** How far the record reaches where it is shorter than a day. */
function recordedSince({ revision }: PlanSummary): (time: string) => string {
  const first = revision === 1 ? "the first plan" : "the oldest plan that is kept";
  return (time) => `Recorded since ${first}, ${ago(time)}`;
}

/** What plans changed since the first one, which may be one of them. */
function told(plan: PlanSummary, made: PlanSummary[], first: PlanSummary): string {
  if (made.length === 0) return "no new plan";
  const sum = (noun: string, read: (plan: PlanSummary) => number | null) =>
    made.some((item) => read(item) === null)
      ? `${noun}s not recorded`
      : counted(
          made.reduce((total, item) => total + read(item)!, 0),
          noun,
        );
  const value =
    first.request_digest === plan.request_digest
      ? `value ${change(first.objective, plan.objective)}`
      : `value ${figure(first.objective)}, and ${figure(plan.objective)} by another request`;
  return [
    counted(made.length, "plan"),
    sum("move", (item) => item.moves),
    sum("first placement", (item) => item.first_placements),
    value,
    `${change(first.unplaced_workloads, plan.unplaced_workloads)} without a place`,
  ].join(", ");
}

/** `4 → 2`, or `4` where nothing changed. */
function change(before: number | null, after: number | null): string {
  const [from, to] = [before, after].map((value) => (value === null ? "?" : figure(value)));
  return from === to ? to! : `${from} → ${to}`;
}

function secondsOf({ created }: PlanSummary): number {
  return Date.parse(created ?? "") / 1000;
}
