import { useState } from "preact/hooks";
import type { OptimizerApi, ShownPlan } from "../api/optimizer-api";
import type { Plan } from "../api/wire";
import { figure } from "../parts/sentences";
import { Busy, ProblemNotice } from "../parts/notice";
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
      <PlanFigures plan={shown} />
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
      {plan.seconds !== null && `, found in ${plan.seconds.toFixed(1)} s`}.
    </p>
  );
}

/** Workloads and policies before and after a plan. */
export function BeforeAndAfter({ plan }: { plan: Plan }) {
  return (
    <>
      <table>
        <caption>Workloads before and after</caption>
        <thead>
          <tr>
            <th scope="col">Workload</th>
            <th scope="col">Now</th>
            <th scope="col">Planned</th>
          </tr>
        </thead>
        <tbody>
          {shownMoves(plan.moves).map((move) => (
            <tr key={move.workload} class={move.changed ? "changed" : ""}>
              <th scope="row">{move.workload}</th>
              <td>{move.before.join(", ") || "nowhere"}</td>
              <td>{move.after.join(", ") || "nowhere"}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {plan.enforcement_changes.length > 0 && (
        <table>
          <caption>Policies that change</caption>
          <thead>
            <tr>
              <th scope="col">Cluster</th>
              <th scope="col">Now</th>
              <th scope="col">Planned</th>
            </tr>
          </thead>
          <tbody>
            {plan.enforcement_changes.map((item) => (
              <tr key={item.cluster}>
                <th scope="row">{item.cluster}</th>
                <td>{item.before.join(", ") || "none"}</td>
                <td>{item.after.join(", ") || "none"}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </>
  );
}
