import { useState } from "preact/hooks";
import type { OptimizerApi, ShownPlan } from "../api/optimizer-api";
import type { Fleet, Plan } from "../api/wire";
import { Dialog } from "../parts/dialog";
import { figure } from "../parts/sentences";
import { Busy, ProblemNotice } from "../parts/notice";
import { useCall } from "../parts/use-call";
import { moves, placesNow, placesOf, policyChanges } from "./moves";
import { UnplacedWorkloads } from "./explanation-view";

interface Props {
  api: OptimizerApi;
  fleet: Fleet;
  shown: ShownPlan;
  onApplied: () => void;
}

/** A plan beside what runs now, and the button that applies it. */
export function PlanView({ api, fleet, shown, onApplied }: Props) {
  const [asking, setAsking] = useState(false);
  const [call, start] = useCall<Plan>();
  const { plan } = shown;
  const apply = async () => {
    setAsking(false);
    await start(() => api.apply(shown));
    onApplied();
  };
  return (
    <section aria-label="Plan">
      <PlanFigures plan={plan} />
      <BeforeAndAfter fleet={fleet} plan={plan} />
      <UnplacedWorkloads plan={plan} />
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
        <Dialog title="Apply this plan?" onClose={() => setAsking(false)}>
          <p>
            {plan.changes.length} objects of namespace {fleet.namespace} are written:
          </p>
          <ul class="changes">
            {plan.changes.map((item) => (
              <li key={`${item.kind} ${item.name}`}>
                {item.action} {item.kind} {item.name}
              </li>
            ))}
          </ul>
          <p>The optimizer writes under your own rights. “Plans” can roll it back.</p>
          <button type="button" class="primary" onClick={apply}>
            Apply
          </button>
        </Dialog>
      )}
    </section>
  );
}

function ApplyButton({ shown, onAsk }: { shown: ShownPlan; onAsk: () => void }) {
  if (shown.hypothetical) return <p class="notice">{shown.hypothetical}</p>;
  if (shown.plan.changes.length === 0) return <p class="notice">The hub is already like this.</p>;
  return (
    <button type="button" class="primary" onClick={onAsk}>
      Apply…
    </button>
  );
}

function PlanFigures({ plan }: { plan: Plan }) {
  const gap = plan.gap === null ? "" : `, at most ${(100 * plan.gap).toFixed(2)} % below the best`;
  return (
    <p role="status">
      {plan.status}: objective {figure(plan.objective_value)}
      {plan.status === "Optimal" ? "" : gap}, found in {plan.seconds.toFixed(1)} s.
    </p>
  );
}

function BeforeAndAfter({ fleet, plan }: { fleet: Fleet; plan: Plan }) {
  const policies = policyChanges(fleet.clusters, plan.policies);
  const all = moves(placesNow(fleet.workloads), placesOf(plan.placements));
  return (
    <>
      <table class="wide">
        <caption>Workloads before and after</caption>
        <thead>
          <tr>
            <th scope="col">Workload</th>
            <th scope="col">Now</th>
            <th scope="col">Planned</th>
          </tr>
        </thead>
        <tbody>
          {all.map((move) => (
            <tr key={move.workload} class={move.changed ? "changed" : ""}>
              <th scope="row">{move.workload}</th>
              <td>{move.before.join(", ") || "nowhere"}</td>
              <td>
                {move.changed && <span aria-hidden="true">→ </span>}
                {move.after.join(", ") || "nowhere"}
                {!move.changed && <span class="unseen"> (stays)</span>}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {policies.length > 0 && (
        <table class="wide">
          <caption>Policies that change</caption>
          <thead>
            <tr>
              <th scope="col">Cluster</th>
              <th scope="col">Now</th>
              <th scope="col">Planned</th>
            </tr>
          </thead>
          <tbody>
            {policies.map((item) => (
              <tr key={item.cluster}>
                <th scope="row">{item.cluster}</th>
                <td>{item.before || "none"}</td>
                <td>{item.after || "none"}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </>
  );
}
