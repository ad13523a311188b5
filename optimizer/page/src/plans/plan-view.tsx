import { useState } from "preact/hooks";
import type { OptimizerApi, ShownPlan } from "../api/optimizer-api";
import type { Plan } from "../api/wire";
import { figure, sentence } from "../parts/sentences";
import { Busy, ProblemNotice } from "../parts/notice";
import { Table } from "../parts/table";
import { useCall } from "../parts/use-call";
import { ConfirmChanges } from "./confirm-changes";
import { shownMoves } from "./moves";
import { UnplacedWorkloads } from "./explanation-view";

interface Props {
  api: OptimizerApi;
  shown: ShownPlan;
  onApplied: () => void;
}

/** A plan beside what runs now, and the button that applies it. */
export function PlanView({ api, shown, onApplied }: Props) {
  const [asking, setAsking] = useState(false);
  const [call, start] = useCall<Plan>();
  const apply = async () => {
    setAsking(false);
    await start(() => api.apply(shown));
    onApplied();
  };
  return (
    <section aria-label="Plan">
      {shown.objective_from && <p class="notice">{shown.objective_from.message}</p>}
      <PlanFigures plan={shown} />
      <Issues issues={shown.gaps} />
      <BeforeAndAfter plan={shown} />
      <UnplacedWorkloads api={api} plan={shown} />
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
          onConfirm={apply}
          onClose={() => setAsking(false)}
        />
      )}
    </section>
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

function PlanFigures({ plan }: { plan: Plan }) {
  const gap = plan.gap === null ? "" : `, at most ${figure(100 * plan.gap)} % below the best`;
  return (
    <p role="status">
      {plan.status}: objective {figure(plan.objective_value)}
      {plan.status === "Optimal" ? "" : gap}
      {plan.seconds !== null && `, found in ${figure(plan.seconds)} s`}.
    </p>
  );
}

/** A solver that failed, and what of the input could not be used. */
function Issues({ issues }: { issues: Plan["gaps"] }) {
  const failed = issues.find((item) => item.reason === "SolverFailed");
  const unused = issues.filter((item) => item !== failed);
  return (
    <>
      {failed && (
        <p class="notice bad" role="alert">
          {sentence(failed.message)}
        </p>
      )}
      {unused.length > 0 && (
        <details>
          <summary>Issues: {unused.length}</summary>
          <ul>
            {unused.map((item, position) => (
              <li key={position}>
                {item.reason}: {item.message}
              </li>
            ))}
          </ul>
        </details>
      )}
    </>
  );
}

/** Workloads and policies before and after a plan. */
function BeforeAndAfter({ plan }: { plan: Plan }) {
  const moved = shownMoves(plan.moves).map(({ workload, before, after, changed }) => ({
    key: workload,
    cells: [workload, before.join(", ") || "nowhere", after.join(", ") || "nowhere"],
    changed,
  }));
  const enforced = plan.enforcement_changes.map(({ cluster, before, after }) => ({
    key: cluster,
    cells: [cluster, before.join(", ") || "none", after.join(", ") || "none"],
  }));
  return (
    <>
      <Table
        caption="Workloads before and after"
        heads={["Workload", "Now", "Planned"]}
        rows={moved}
      />
      {enforced.length > 0 && (
        <Table
          caption="Policies that change"
          heads={["Cluster", "Now", "Planned"]}
          rows={enforced}
        />
      )}
    </>
  );
}
