import type { Explanation, Plan } from "../api/wire";
import { figure, sentence } from "../parts/sentences";

/** Workloads that a plan leaves out: the reason, and the cheapest remedy where it was computed. */
export function UnplacedWorkloads({ plan }: { plan: Plan }) {
  if (plan.unplaced.length === 0) return null;
  const explained = new Map(plan.explanation?.unplaced.map((item) => [item.workload, item]));
  return (
    <section aria-label="Unplaced workloads">
      <h3>Not placed</h3>
      <ul>
        {plan.unplaced.map((item) => {
          const remedy = explained.get(item.workload)?.remedy;
          return (
            <li key={item.workload}>
              <strong>{item.workload}</strong>: {item.message}
              {remedy && (
                <p>
                  Cheapest remedy: {remedy.changes.map((change) => change.message).join("; ")}
                  {remedy.losing.length > 0 && `. It costs: ${remedy.losing.join("; ")}`}
                </p>
              )}
            </li>
          );
        })}
      </ul>
    </section>
  );
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
          {item.remedy && (
            <p>Cheapest remedy: {item.remedy.changes.map((one) => one.message).join("; ")}</p>
          )}
        </div>
      ))}
      {places.length + unplaced.length === 0 && (
        <p>The last applied plan does not contain this workload. “What if” plans it.</p>
      )}
    </>
  );
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
