import type { OptimizerApi, ShownPlan } from "../api/optimizer-api";
import type { Explanation, Plan, Remedy } from "../api/wire";
import { Busy, ProblemNotice } from "../parts/notice";
import { Said } from "../parts/said";
import { counted, figure, listed, sentence } from "../parts/sentences";
import { Table } from "../parts/table";
import { useCall } from "../parts/use-call";

interface Props {
  /** Null: nobody can be asked, so that only what the plan explains itself is shown. */
  api: OptimizerApi | null;
  plan: ShownPlan;
}

/** What a plan leaves out and why, on a click the cheapest remedies and the limits that it uses up. */
export function PlanExplanation({ api, plan }: Props) {
  const [call, start] = useCall<Plan>();
  const { request, unplaced } = plan;
  const explanation = call.answer?.explanation ?? plan.explanation ?? null;
  const remedies = new Map(explanation?.unplaced.map((item) => [item.workload, item.remedy]));
  return (
    <>
      {unplaced.length > 0 && (
        <section aria-label="Unplaced workloads">
          <h2>Not placed</h2>
          <ul>
            {alike(unplaced).map(([message, names]) => (
              <li key={message}>
                <strong>{listed(names, MOST_NAMES)}</strong>: <Said of={message} />
                {names
                  .filter((name) => remedies.has(name))
                  .map((name) => (
                    <p key={name}>
                      {names.length > 1 && `${name}: `}
                      {cheapest(remedies.get(name))}
                    </p>
                  ))}
              </li>
            ))}
          </ul>
        </section>
      )}
      {explanation && <BindingLimits limits={explanation.binding} />}
      {explanation && explanation.not_computed.length > 0 && (
        <NotComputed parts={explanation.not_computed} />
      )}
      {api && request && !explanation && (
        <p>
          <button
            type="button"
            disabled={call.running}
            onClick={() => start(() => api.explain(request, { explain: true }))}
          >
            {unplaced.length > 0 ? "What would place them?" : "What limits this plan?"}
          </button>
        </p>
      )}
      {call.running && <Busy what="Looking for limits and the cheapest remedies" />}
      {call.problem && <ProblemNotice problem={call.problem} />}
    </>
  );
}

/** Workloads that are named of those that lack a place for the same reason. */
const MOST_NAMES = 30;

/** Workloads by why they have no place: many have the same reason, behind their own name. */
function alike(unplaced: Plan["unplaced"]): [string, string[]][] {
  const found = new Map<string, string[]>();
  for (const { workload, message } of unplaced) {
    const name = `workload ${workload}: `;
    const reason = message.startsWith(name) ? message.slice(name.length) : message;
    found.set(reason, [...(found.get(reason) ?? []), workload]);
  }
  return [...found];
}

/** Limits that are listed; those of many clusters are alike. */
const MOST_LIMITS = 20;

function BindingLimits({ limits }: { limits: Explanation["binding"] }) {
  if (limits.length === 0) return <p class="notice">The plan uses up no limit.</p>;
  const worth = ({ price }: Explanation["binding"][number]) => Object.values(price ?? {})[0] ?? 0;
  const sorted = [...limits].sort((one, other) => worth(other) - worth(one));
  return (
    <>
      <Table
        caption="Limits that the plan uses up"
        heads={["Limit", "Where", "Used", "One more is worth"]}
        rows={sorted.slice(0, MOST_LIMITS).map((item) => ({
          key: `${item.cluster} ${item.limit}`,
          cells: [
            item.limit,
            item.cluster || "the fleet",
            figure(item.used),
            item.price === null ? "not computed" : figure(worth(item)),
          ],
        }))}
      />
      {limits.length > MOST_LIMITS && <p>{limits.length - MOST_LIMITS} more are left out.</p>}
    </>
  );
}

function cheapest(remedy: Remedy | null | undefined): string {
  if (!remedy) return "No remedy was found in time.";
  const what = remedy.changes.map((change) => change.message).join("; ");
  const cost =
    remedy.losing.length > 0 ? ` It costs the place of ${remedy.losing.join(", ")}.` : "";
  return `Cheapest remedy: ${sentence(what)}${cost}`;
}

/** Limits of one conflict that are shown at once. */
const FEW_LIMITS = 8;

/** Why a workload is where it is, or why it is not on the cluster that was asked about. */
export function WorkloadExplanation(props: { explanation: Explanation; workload: string }) {
  const { explanation, workload } = props;
  const places = explanation.places.filter((item) => item.workload === workload);
  const unplaced = explanation.unplaced.filter((item) => item.workload === workload);
  return (
    <>
      {explanation.why_not.map((item) => (
        <p key={item.asked} class="notice">
          <Said of={item.message} />
          {item.lost && ` The objective would lose ${figure(item.lost.total)}.`}
        </p>
      ))}
      {places.map((item) => (
        <dl key={item.cluster}>
          <dt>Best place now</dt>
          <dd>
            {item.cluster} {item.device}, policy {item.policy || "none"}, score {figure(item.score)}
          </dd>
          <dt>Best other place</dt>
          <dd>{runnerUp(item)}</dd>
          <dt>Margin</dt>
          <dd>{margin(item)}</dd>
        </dl>
      ))}
      {unplaced.map((item) => (
        <div key={item.workload}>
          <p>
            <Said of={item.message} />
          </p>
          <p>{cheapest(item.remedy)}</p>
          <details open={item.limits.length <= FEW_LIMITS}>
            <summary>{counted(item.limits.length, "limit")}</summary>
            <ul>
              {item.limits.map((limit) => (
                <li key={limit.rule}>
                  <Said of={limit.message} />
                </li>
              ))}
            </ul>
          </details>
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

function runnerUp({ runner_up: other }: Explanation["places"][number]): string {
  if (!other) {
    return "nothing else can run it";
  }
  const taken = other.taken_by?.length
    ? `; the plan has ${listed(other.taken_by, MOST_NAMES)} there`
    : "";
  return `${other.cluster} ${other.device}, score ${figure(other.score)}${taken}`;
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
