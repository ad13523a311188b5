import type { OptimizerApi, ShownPlan } from "../api/optimizer-api";
import type { Explanation, Plan, Remedy } from "../api/wire";
import { Busy, ProblemNotice } from "../parts/notice";
import { figure, sentence } from "../parts/sentences";
import { useCall } from "../parts/use-call";

/** Workloads that a plan leaves out: the reason, and on a click the cheapest remedy. */
export function UnplacedWorkloads({ api, plan }: { api: OptimizerApi; plan: ShownPlan }) {
  const [call, start] = useCall<Plan>();
  const { request, unplaced } = plan;
  if (unplaced.length === 0) return null;
  const remedies = new Map(
    call.answer?.explanation?.unplaced.map((item) => [item.workload, item.remedy]),
  );
  return (
    <section aria-label="Unplaced workloads">
      <h2>Not placed</h2>
      <ul>
        {unplaced.map((item) => (
          <li key={item.workload}>
            <strong>{item.workload}</strong>: {sentence(item.message)}
            {remedies.has(item.workload) && <p>{cheapest(remedies.get(item.workload))}</p>}
          </li>
        ))}
      </ul>
      {request && !call.answer && (
        <button
          type="button"
          disabled={call.running}
          onClick={() => start(() => api.explain(request, []))}
        >
          What would place them?
        </button>
      )}
      {call.answer && remedies.size < unplaced.length && (
        <NotComputed parts={call.answer.explanation?.not_computed} />
      )}
      {call.running && <Busy what="Looking for the cheapest remedy" />}
      {call.problem && <ProblemNotice problem={call.problem} />}
    </section>
  );
}

function cheapest(remedy: Remedy | null | undefined): string {
  if (!remedy) return "No remedy was found in time.";
  const what = remedy.changes.map((change) => change.message).join("; ");
  const cost =
    remedy.losing.length > 0 ? ` It costs the place of ${remedy.losing.join(", ")}.` : "";
  return `Cheapest remedy: ${sentence(what)}${cost}`;
}

/** Why a workload is where it is, or why it is not on the cluster that was asked about. */
export function WorkloadExplanation(props: { explanation: Explanation; workload: string }) {
  const { explanation, workload } = props;
  const places = explanation.places.filter((item) => item.workload === workload);
  const unplaced = explanation.unplaced.filter((item) => item.workload === workload);
  return (
    <>
      {explanation.why_not.map((item) => (
        <p key={item.asked} class="notice">
          {sentence(item.message)}
          {item.lost && ` The objective would lose ${figure(item.lost.total)}.`}
        </p>
      ))}
      {places.map((item) => (
        <dl key={item.cluster}>
          <dt>Placed on</dt>
          <dd>
            {item.cluster} {item.device}, policy {item.policy || "none"}, score {figure(item.score)}
          </dd>
          <dt>Next best</dt>
          <dd>
            {item.runner_up
              ? `${item.runner_up.cluster} ${item.runner_up.device}, score ${figure(item.runner_up.score)}`
              : "nothing else can run it"}
          </dd>
          <dt>Margin</dt>
          <dd>{margin(item)}</dd>
        </dl>
      ))}
      {unplaced.map((item) => (
        <div key={item.workload}>
          <p>{sentence(item.message)}</p>
          <ul>
            {item.limits.map((limit) => (
              <li key={limit.rule}>{sentence(limit.message)}</li>
            ))}
          </ul>
          <p>{cheapest(item.remedy)}</p>
        </div>
      ))}
      {places.length + unplaced.length === 0 && <NotComputed parts={explanation.not_computed} />}
    </>
  );
}

/** Why an explanation lacks something. */
function NotComputed({ parts }: { parts: string[] | undefined }) {
  const said = parts?.length ? parts.join("; ") : "the plan says nothing about it";
  return <p class="notice">Not computed: {said}.</p>;
}

function margin(item: Explanation["places"][number]): string {
  if (item.margin === null) {
    return item.at_most
      ? `moving it costs at most ${figure(item.at_most.total)}`
      : "was not computed in time";
  }
  if (item.margin.total === 0) return "none: another plan is as good";
  return `any plan without this place is worth ${figure(item.margin.total)} less`;
}
