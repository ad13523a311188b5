import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { OptimizerApi, ShownPlan } from "../api/optimizer-api";
import type { Fleet, Plan } from "../api/wire";
import { counted, listed } from "../parts/sentences";
import { Busy, ProblemNotice } from "../parts/notice";
import { Said } from "../parts/said";
import { Table } from "../parts/table";
import { useCall } from "../parts/use-call";
import { ConfirmChanges } from "./confirm-changes";
import { PlanExplanation } from "./explanation-view";
import { FlowDiagram } from "./flow-diagram";
import { GpuChanges, MOST_LINKS, PlanDrawing } from "./plan-drawing";
import { changes, inversions, valueNow } from "./plan-figures";
import { PlanSummary, ValueByScore, ValueByWorkload } from "./plan-summary";

interface Props {
  /** Null where nobody can be asked: the plan can be looked at, and no more. */
  api: OptimizerApi | null;
  fleet: Fleet;
  shown: ShownPlan;
  /** Whether it answers an earlier question than the one that the reader sees. */
  stale?: boolean;
  /** What applies the same in a terminal. */
  command?: string | null;
  /** By which scores it counts, in words. */
  by?: ComponentChildren;
  /** What runs now is worth, null if that is not known; missing: what the plan tells. */
  now?: number | null;
  /** Whether the drawing has all clusters at first. */
  whole?: boolean;
  onCluster?: (name: string) => void;
  onApplied: () => void;
}

/** A plan beside what runs now, and the button that applies it. */
export function PlanView(props: Props) {
  const { api, fleet, shown, stale = false, command = null, whole, onCluster, onApplied } = props;
  const { now = valueNow(shown) } = props;
  return (
    <section aria-label="Plan" class={stale ? "stale" : ""}>
      {shown.objective_from && <p class="notice">{shown.objective_from.message}</p>}
      {inversions(shown.request).map((said) => (
        <p key={said} class="notice">
          {said}
        </p>
      ))}
      <PlanSummary plan={shown} by={props.by} now={now} />
      <Issues issues={shown.gaps} />
      {api && !stale && <ApplyPlan key={shown.digest} {...{ api, shown, command, onApplied }} />}
      <PlanDrawing
        fleet={fleet}
        plan={shown}
        whole={whole ?? false}
        onCluster={onCluster ?? (() => {})}
      />
      <Flows fleet={fleet} plan={shown} />
      <GpuChanges plan={shown} />
      <PlanExplanation key={shown.digest} api={api} plan={shown} />
      <ValueByScore plan={shown} />
      <ValueByWorkload plan={shown} />
      <PolicyChanges plan={shown} />
    </section>
  );
}

function ApplyPlan(props: {
  api: OptimizerApi;
  shown: ShownPlan;
  command: string | null;
  onApplied: () => void;
}) {
  const { api, shown, command, onApplied } = props;
  const [asking, setAsking] = useState(false);
  const [call, start] = useCall<Plan>();
  const apply = async () => {
    setAsking(false);
    await start(() => api.apply(shown));
    onApplied();
  };
  return (
    <>
      {call.running && <Busy what="Applying the plan" />}
      {call.problem && <ProblemNotice problem={call.problem} />}
      {call.answer?.applied && (
        <p class="notice good" role="status">
          Applied{call.answer.record && ` as ${call.answer.record}`}. OCM carries it out now; the
          fleet shows how far it is.
        </p>
      )}
      {!call.answer && <ApplyButton shown={shown} onAsk={() => setAsking(true)} />}
      {asking && (
        <ConfirmChanges
          title="Apply this plan?"
          moves={shown.moves}
          changes={shown.changes}
          command={command}
          onConfirm={apply}
          onClose={() => setAsking(false)}
        />
      )}
    </>
  );
}

function ApplyButton({ shown, onAsk }: { shown: ShownPlan; onAsk: () => void }) {
  if (shown.hindrance) return <p class="notice">{shown.hindrance}</p>;
  if (!shown.request) {
    return <p class="notice">This plan pretends facts, so it can’t be applied.</p>;
  }
  if (shown.changes.length === 0) return <p class="notice">The hub is already like this.</p>;
  return (
    <button type="button" class="primary" onClick={onAsk}>
      Apply…
    </button>
  );
}

/** Flows between groups: at once where the drawing has too many arrows, else on a click. */
function Flows({ fleet, plan }: { fleet: Fleet; plan: Plan }) {
  const moving = plan.moves.filter((move) => move.action === "moves").length;
  if (!plan.moves.some(changes)) return null;
  return (
    <details open={moving > MOST_LINKS}>
      <summary>Flows between groups of clusters</summary>
      <FlowDiagram moves={plan.moves} fleet={fleet} />
    </details>
  );
}

/** Reasons of issues that are named before somebody opens them. */
const REASONS = 5;

/** A solver that failed, and what of the input could not be used: of each reason a line, the rest on a click. */
function Issues({ issues }: { issues: Plan["gaps"] }) {
  const failed = issues.find((item) => item.reason === "SolverFailed");
  const unused = new Map<string, string[]>();
  for (const { reason, message } of issues.filter((item) => item !== failed)) {
    unused.set(reason, [...(unused.get(reason) ?? []), message]);
  }
  return (
    <>
      {failed && (
        <p class="notice bad" role="alert">
          <Said of={failed.message} />
        </p>
      )}
      {unused.size > 0 && (
        <details>
          <summary>
            Issues:{" "}
            {listed(
              [...unused].map(([reason, of]) => `${of.length} ${reason}`),
              REASONS,
            )}
          </summary>
          <ul>
            {[...unused].map(([reason, [first, ...others]]) => (
              <li key={reason}>
                {reason}: {first}
                {others.length > 0 && (
                  <details>
                    <summary>{others.length} more like it</summary>
                    <ul>
                      {others.map((message, at) => (
                        <li key={at}>{message}</li>
                      ))}
                    </ul>
                  </details>
                )}
              </li>
            ))}
          </ul>
        </details>
      )}
    </>
  );
}

/** Clusters whose policies are listed at once. */
const LISTED = 12;

/** Clusters whose policies change; GPUs that they divide are divided anew. */
function PolicyChanges({ plan }: { plan: Plan }) {
  const { enforcement_changes: changes } = plan;
  if (changes.length === 0) return null;
  return (
    <details open={changes.length <= LISTED}>
      <summary>Policies of {counted(changes.length, "cluster")} change</summary>
      <Table
        caption="Policies that change"
        heads={["Cluster", "Now", "Planned"]}
        rows={changes.map(({ cluster, before, after }) => ({
          key: cluster,
          cells: [cluster, before.join(", ") || "none", after.join(", ") || "none"],
        }))}
      />
    </details>
  );
}
