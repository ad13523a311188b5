import { useState } from "preact/hooks";
import type { OptimizerApi, ShownPlan } from "./api/optimizer-api";
import type { Fleet } from "./api/wire";
import { FleetCapacity } from "./fleet/capacity";
import { ClusterDetails } from "./fleet/cluster-details";
import type { FleetChanges } from "./fleet/fleet-changes";
import { FleetView } from "./fleet/fleet-view";
import { Findings } from "./fleet/health";
import { Overview } from "./fleet/overview";
import { Scores } from "./fleet/scores";
import { useFleet } from "./fleet/use-fleet";
import { isPlaced, Workloads } from "./fleet/workloads";
import { Ago } from "./parts/ago";
import { Link } from "./parts/link";
import { Busy, ProblemNotice } from "./parts/notice";
import { counted } from "./parts/sentences";
import { ago } from "./parts/times";
import { go, useAddress } from "./parts/use-address";
import { PlanHistory } from "./plans/plan-history";
import { PlanView } from "./plans/plan-view";
import { KeptPlacements } from "./plans/kept-placements";
import { Rollouts } from "./plans/rollouts";
import { WhatIf } from "./plans/what-if";
import { Why } from "./plans/why";
import { wishParts, useWish } from "./plans/wish-address";
import { Scorers } from "./scorers/scorers";

const TABS = {
  fleet: "Fleet",
  scores: "Scores",
  workloads: "Workloads",
  findings: "Findings",
  whatif: "What if",
  plans: "Plans",
  rollouts: "Rollouts",
  kept: "Kept by itself",
  scorers: "Scorers",
};
type Tab = keyof typeof TABS;

interface Props {
  api: OptimizerApi;
  namespace: string;
  /** Takes a bearer token; missing where the host of the page identifies the caller. */
  onToken?: (token: string) => void;
  /** A plan that was made elsewhere and that the page opens. */
  shown?: ShownPlan | null;
}

/** The whole page: the fleet, plans for it, and what was applied. */
export function Page({ api, namespace, onToken, shown = null }: Props) {
  const { fleet, changes, readAt, problem, refresh } = useFleet(api, namespace);
  const [view] = useAddress("view", shown ? "whatif" : "fleet");
  const tab = Object.hasOwn(TABS, view) ? (view as Tab) : "fleet";
  const unknown = problem?.status === 401 && onToken;
  return (
    <>
      <header class="top">
        <h1>Dynamic Scoring Framework</h1>
        <p>
          Namespace {namespace}
          {fleet && `, ${sizeOf(fleet)}`}
          {fleet && readAt > 0 && (
            <>
              , <Ago time={new Date(readAt).toISOString()} told={readAgo} />
            </>
          )}
        </p>
      </header>
      <nav aria-label="Views">
        {(Object.keys(TABS) as Tab[]).map((name) => (
          <Link key={name} to={{ view: name }} current={tab === name}>
            {TABS[name]}
          </Link>
        ))}
      </nav>
      <main>
        {problem && <ProblemNotice problem={problem} />}
        {unknown && <TokenForm onToken={(token) => (onToken(token), refresh())} />}
        {!fleet && !problem && <Busy what="Reading the fleet" />}
        {fleet && (
          <View
            api={api}
            fleet={fleet}
            changes={changes}
            shown={shown}
            tab={tab}
            onApplied={refresh}
          />
        )}
      </main>
    </>
  );
}

function sizeOf({ clusters, workloads, omitted }: Fleet): string {
  const here = counted(clusters.length + (omitted.clusters ?? 0), "cluster");
  return `${here}, ${counted(workloads.length + (omitted.workloads ?? 0), "workload")}`;
}

/** When the whole fleet was read last; what changed since then is shown, too. */
function readAgo(time: string): string {
  return `fleet read ${ago(time)}`;
}

interface ViewProps {
  api: OptimizerApi;
  fleet: Fleet;
  changes: FleetChanges;
  shown: ShownPlan | null;
  tab: Tab;
  onApplied: () => void;
}

function View({ api, fleet, changes, shown, tab, onApplied }: ViewProps) {
  const [opened, setOpened] = useAddress("cluster");
  const [why] = useAddress("why");
  const [where] = useAddress("where");
  const wished = useWish();
  const ask = (why: string, where: string) => go({ cluster: "", why, where });
  const lose = (cluster: string) => {
    const { wish } = wished;
    const lost = { ...wish, lose: [...new Set([...wish.lose, cluster])] };
    go({ view: "whatif", cluster: "", ...wishParts(lost) });
  };
  return (
    <>
      {tab === "fleet" && (
        <>
          <Overview api={api} fleet={fleet} />
          <FleetView fleet={fleet} changed={changes.clusters} onOpen={setOpened} />
          <FleetCapacity fleet={fleet} />
        </>
      )}
      {tab === "scores" && <Scores api={api} fleet={fleet} changes={changes} onOpen={setOpened} />}
      {tab === "workloads" && <Workloads fleet={fleet} changes={changes} onWhy={ask} />}
      {tab === "findings" && <Findings fleet={fleet} onWhy={ask} />}
      {tab === "whatif" && (
        <>
          {shown && <PlanView api={api} fleet={fleet} shown={shown} onApplied={onApplied} />}
          <WhatIf
            api={api}
            fleet={fleet}
            wished={wished}
            waits={shown !== null}
            onApplied={onApplied}
          />
        </>
      )}
      {tab === "plans" && <PlanHistory api={api} namespace={fleet.namespace} />}
      {tab === "rollouts" && <Rollouts api={api} namespace={fleet.namespace} />}
      {tab === "kept" && <KeptPlacements api={api} fleet={fleet} />}
      {tab === "scorers" && <Scorers api={api} fleet={fleet} />}
      {opened && (
        <ClusterDetails
          api={api}
          fleet={fleet}
          name={opened}
          onLose={lose}
          onWhy={ask}
          onClose={() => setOpened("")}
        />
      )}
      {why && (
        <Why
          api={api}
          namespace={fleet.namespace}
          workload={why}
          cluster={where}
          placed={isPlaced(fleet, why)}
          recorded={fleet.workloads.find(({ name }) => name === why)?.unplaced ?? ""}
          onClose={() => ask("", "")}
        />
      )}
    </>
  );
}

function TokenForm({ onToken }: { onToken: (token: string) => void }) {
  const [token, setToken] = useState("");
  return (
    <form
      class="card"
      onSubmit={(event) => {
        event.preventDefault();
        onToken(token.trim());
      }}
    >
      <label>
        Bearer token of the hub
        <input
          type="password"
          autocomplete="off"
          value={token}
          onInput={(event) => setToken(event.currentTarget.value)}
        />
      </label>
      <button type="submit" class="primary" disabled={!token.trim()}>
        Use
      </button>
      <p>
        Such as from <code>kubectl create token</code>. It stays in this tab's memory, and is
        forgotten when the tab is closed or loaded again.
      </p>
    </form>
  );
}
