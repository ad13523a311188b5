import { useEffect } from "preact/hooks";
import type { ShownPlan } from "../api/optimizer-api";
import type { Fleet } from "../api/wire";
import { PlanView } from "./plan-view";

/** The page as a file that `dsf plan --picture` wrote: one plan and its fleet, and nobody to ask. */
export function PlanPicture({ text }: { text: string }) {
  const { plan, fleet } = JSON.parse(text) as { plan: ShownPlan; fleet: Fleet };
  const title = `Plan ${plan.digest.slice(0, 12)} for namespace ${fleet.namespace}`;
  useEffect(() => {
    document.title = title;
  }, [title]);
  return (
    <>
      <header class="top">
        <h1>{title}</h1>
        <p>
          The fleet was read at <time>{new Date(fleet.observed_at).toLocaleString()}</time>. This
          file asks nobody; <code>dsf optimize</code> plans again and applies.
        </p>
      </header>
      <main>
        <PlanView api={null} fleet={fleet} shown={plan} onApplied={() => {}} />
      </main>
    </>
  );
}
