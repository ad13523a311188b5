import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { ShownPlan } from "../api/optimizer-api";
import type { Move } from "../api/wire";
import { counted, figure } from "../parts/sentences";
import { Table } from "../parts/table";
import { shownMoves } from "./moves";
import {
  ACTIONS,
  budgets,
  countsByAction,
  scoreSums,
  termOf,
  termsOf,
  verdict,
  workloadValues,
  type Change,
} from "./plan-figures";
import "./plan.css";

/** Workloads that are listed at once; the others are a click away. */
const LISTED = 40;

/** What a plan does, in figures that are understood at once. `by`: which scores count. `now`: what runs is worth. */
export function PlanSummary(props: { plan: ShownPlan; by: ComponentChildren; now: number | null }) {
  const { plan, by, now } = props;
  const counts = countsByAction(plan.moves);
  const told = (Object.keys(ACTIONS) as Move["action"][]).filter(
    (action) => counts[action] || action === "moves",
  );
  return (
    <>
      <dl class="plan-figures" aria-label="What the plan does">
        <Figure name={by ? <>Value, {by}</> : "Value"}>
          {now !== null && <span class="was">{figure(now)} → </span>}
          {figure(plan.objective_value)}{" "}
          {now !== null && <Gain amount={plan.objective_value - now} />}
        </Figure>
        {told.map((action) => (
          <Figure key={action} name={ACTIONS[action]} kind={action}>
            {counts[action]}
          </Figure>
        ))}
        {plan.enforcement_changes.length > 0 && (
          <Figure name="change policies">
            {counted(plan.enforcement_changes.length, "cluster")}
          </Figure>
        )}
      </dl>
      <p role="status">
        {plan.status}: {verdict(plan)}
        {plan.seconds !== null && `, found in ${figure(plan.seconds)} s`}.
      </p>
    </>
  );
}

function Figure(props: { name: ComponentChildren; kind?: string; children: ComponentChildren }) {
  return (
    <div class={props.kind}>
      <dt>{props.name}</dt>
      <dd>{props.children}</dd>
    </div>
  );
}

/** A change; `better`: 1 if more is better, -1 if less is, 0 if that is not known. */
function Gain({ amount, better = 1 }: { amount: number; better?: number }) {
  if (Math.abs(amount) < 0.005) return <span class="same">as now</span>;
  return (
    <span class={better * amount > 0 ? "good" : better * amount < 0 ? "bad" : ""}>
      {amount > 0 ? "+" : "−"}
      {figure(Math.abs(amount))}
    </span>
  );
}

/** What each score sums up to, now and in the plan, and how much of its budget that is. */
export function ValueByScore({ plan }: { plan: ShownPlan }) {
  const sums = [...scoreSums(plan.moves)];
  if (sums.length === 0) return null;
  const limits = budgets(plan.request);
  const terms = termsOf(plan.request);
  return (
    <Table
      caption="By score, over all places"
      heads={["Score", "Now and planned", "Now", "Planned", "Change", "Budget"]}
      rows={sums.map(([name, change]) => {
        const limit = limits.get(name);
        const term = termOf(terms, name);
        const better = term ? (term.invert ? -1 : 1) : 0;
        const most = Math.max(Math.abs(change.before), Math.abs(change.after), limit ?? 0);
        return {
          key: name,
          cells: [
            name,
            <PairedBar {...change} most={most} />,
            figure(change.before),
            figure(change.after),
            <Gain amount={change.after - change.before} better={better} />,
            limit === undefined ? "none" : `${figure(change.after)} of ${figure(limit)}`,
          ],
        };
      })}
    />
  );
}

/** Workloads before and after a plan, the worst first, with what their places are worth. */
export function ValueByWorkload({ plan }: { plan: ShownPlan }) {
  const [listed, setListed] = useState(LISTED);
  const values = workloadValues(plan, termsOf(plan.request));
  const most = values ? Math.max(1, ...[...values.values()].flatMap(sizes)) : 1;
  const actions = new Map(plan.moves.map((move) => [move.workload, move.action]));
  const rows = shownMoves(plan.moves);
  const heads = ["Workload", "What happens", "Now", "Planned"];
  return (
    <>
      <Table
        caption="Workloads before and after"
        heads={values ? [...heads, "Value now and planned"] : heads}
        rows={rows.slice(0, listed).map(({ workload, before, after, changed }) => {
          const value = values?.get(workload);
          return {
            key: workload,
            changed,
            cells: [
              workload,
              ACTIONS_OF_ONE[actions.get(workload) ?? "stays"],
              before.join(", ") || "nowhere",
              after.join(", ") || "nowhere",
              ...(value
                ? [
                    <span class="paired">
                      <PairedBar {...value} most={most} /> {figure(value.before)} →{" "}
                      {figure(value.after)}
                    </span>,
                  ]
                : []),
            ],
          };
        })}
      />
      {rows.length > listed && (
        <button type="button" onClick={() => setListed(rows.length)}>
          Show all {rows.length} workloads
        </button>
      )}
    </>
  );
}

const ACTIONS_OF_ONE: Record<Move["action"], string> = {
  stops: "stops",
  shrinks: "loses places",
  moves: "moves",
  starts: "first placement",
  waits: "has no place",
  stays: "stays",
};

/** Two bars, one above the other: now and planned. */
function PairedBar({ before, after, most }: Change & { most: number }) {
  const width = (part: number) => ({ width: `${(100 * Math.abs(part)) / (most || 1)}%` });
  return (
    <span class="pair" role="img" aria-label={`now ${figure(before)}, planned ${figure(after)}`}>
      <span class="was" style={width(before)} />
      <span class={after < before ? "less" : "more"} style={width(after)} />
    </span>
  );
}

function sizes({ before, after }: Change): number[] {
  return [Math.abs(before), Math.abs(after)];
}
