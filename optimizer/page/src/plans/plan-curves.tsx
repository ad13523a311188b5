import { useMemo } from "preact/hooks";
import type { PlanSummary } from "../api/wire";
import { ago } from "../parts/times";
import { Curve } from "../time/curve";
import { changeLines, valueLine } from "./plan-lines";

/** What the plans of each optimization were worth, and what they changed; a point opens its plan. */
export function PlanCurves(props: { plans: PlanSummary[]; onOpen: (plan: PlanSummary) => void }) {
  const optimizations = [...new Set(props.plans.map((plan) => plan.optimization))];
  return (
    <section aria-label="Plans over time">
      {optimizations.map((name) => (
        <OfOptimization
          key={name}
          name={name}
          plans={props.plans.filter((plan) => plan.optimization === name)}
          onOpen={props.onOpen}
        />
      ))}
    </section>
  );
}

const PLANS = "plans, the newest to the right";

function OfOptimization(props: {
  name: string;
  plans: PlanSummary[];
  onOpen: (plan: PlanSummary) => void;
}) {
  const { name, plans, onOpen } = props;
  const value = useMemo(() => [valueLine(plans)], [plans]);
  const changes = useMemo(() => changeLines(plans), [plans]);
  const known = new Map(plans.map((plan) => [plan.revision, plan]));
  const open = (revision: number) => {
    const plan = known.get(revision);
    if (plan) onOpen(plan);
  };
  const nameOf = (revision: number) => {
    const plan = known.get(revision);
    return plan ? `plan ${revision}, ${ago(plan.created) || "time unknown"}` : "";
  };
  const asked = new Set(plans.map((plan) => plan.request_digest)).size;
  const unknown = plans.filter((plan) => plan.unplaced_workloads === null).length;
  return (
    <>
      <h2>{name}</h2>
      <div class="curves">
        <Curve
          label={`Value of the plans of ${name}`}
          lines={value}
          axes={[PLANS, "value"]}
          steps
          nameOf={nameOf}
          onPick={open}
        />
        <Curve
          label={`What the plans of ${name} changed`}
          lines={changes}
          axes={[PLANS, "how many"]}
          nameOf={nameOf}
          onPick={open}
        />
      </div>
      <p class="count">
        A click, or Enter, opens a plan. The value is the sum of the weighted scores: higher is
        better. A value falls where scores do, and where clusters or workloads are gone.
        {asked > 1 &&
          " The line of values is broken where the request changed: values before and after do not compare."}
        {unknown > 0 &&
          ` ${unknown} of ${plans.length} plans do not say what they changed: an earlier version recorded them.`}
      </p>
    </>
  );
}
