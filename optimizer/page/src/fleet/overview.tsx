import { useState } from "preact/hooks";
import type { OptimizerApi } from "../api/optimizer-api";
import type { Fleet, Kept, Rollout } from "../api/wire";
import { Ago } from "../parts/ago";
import { Link } from "../parts/link";
import { Busy, ProblemNotice } from "../parts/notice";
import { Panel } from "../parts/panel";
import { Said } from "../parts/said";
import { counted, figure } from "../parts/sentences";
import { duration, secondsSince } from "../parts/times";
import { type Call, useCall, usePolled } from "../parts/use-call";
import { effects } from "../plans/confirm-changes";
import { BY_MEANS, gainTold } from "../plans/gain-told";
import { ApproveKept } from "../plans/kept-placements";
import { SinceYesterday } from "../plans/since-yesterday";
import { type Answered, answered } from "../plans/change-cost";
import { NOTHING_CHANGED, wishParts } from "../plans/wish-address";
import { causesOf, objectsOf } from "./causes";
import { FreshnessPanel } from "./freshness-panel";
import { GpuUsePanel } from "./gpu-use-panel";
import { SeverityMark } from "./health";

/** Lines that a panel has place for without scrolling. */
const LINES = 5;

interface Props {
  api: OptimizerApi;
  fleet: Fleet;
}

/** What somebody wants to know first: faults, use, moves, what could be gained, and the age of scores. */
export function Overview({ api, fleet }: Props) {
  return (
    <div class="panels">
      <Wrong fleet={fleet} />
      <GpuUsePanel fleet={fleet} />
      <Moving api={api} fleet={fleet} />
      <Gain api={api} fleet={fleet} />
      <FreshnessPanel fleet={fleet} />
    </div>
  );
}

function Wrong({ fleet }: { fleet: Fleet }) {
  const causes = causesOf(fleet.findings);
  const omitted = fleet.omitted.findings ?? 0;
  const worst = causes.filter(({ severity }) => severity !== "info");
  return (
    <Panel title="Is anything wrong?" class="wrong">
      {worst.length === 0 && <p class="lead good">Nothing is wrong.</p>}
      <ul class="causes">
        {causes.slice(0, LINES).map(({ severity, reason, own, others, oldest }) => (
          <li key={reason}>
            <Link to={{ view: "findings", cause: reason }} title={objectsOf([...own, ...others])}>
              <SeverityMark severity={severity} />
              <span class="reason">{reason}</span>
              <span class="clip">{objectsOf([...own, ...others])}</span>
              <span class="age">{oldest && <Ago time={oldest} told={age} />}</span>
            </Link>
          </li>
        ))}
      </ul>
      {(causes.length > LINES || omitted > 0) && (
        <Link to={{ view: "findings", cause: "" }}>
          {causes.length > LINES ? `${causes.length - LINES} more causes` : `${omitted} more`}
        </Link>
      )}
    </Panel>
  );
}

function age(since: string): string {
  return duration(Math.max(0, secondsSince(since)));
}

function Moving({ api, fleet }: { api: OptimizerApi; fleet: Fleet }) {
  const [call] = usePolled(() => api.rollouts(fleet.namespace), [api, fleet.namespace]);
  const active = call.answer?.filter(({ phase }) => phase === "Progressing") ?? [];
  const states = fleet.workloads.flatMap(({ places }) => Object.values(places));
  const refused = states.filter((state) => state === "Refused").length;
  const underway = states.filter((state) => state !== "Landed").length - refused;
  const nowhere = fleet.workloads.filter(({ places }) => !Object.keys(places).length).length;
  return (
    <Panel title="What moves now?" class="moving">
      <Unread call={call} />
      {call.answer && active.length === 0 && underway === 0 && <p class="lead">Nothing moves.</p>}
      {active.slice(0, 2).map((item) => (
        <RolloutLine key={item.optimization} rollout={item} />
      ))}
      {active.length > 2 && (
        <Link to={{ view: "rollouts" }}>{active.length - 2} more rollouts</Link>
      )}
      {underway > 0 && (
        <Link to={{ view: "workloads" }}>{counted(underway, "place")} not landed yet</Link>
      )}
      {refused > 0 && (
        <Link to={{ view: "workloads", find: "refused" }}>{counted(refused, "place")} refused</Link>
      )}
      {nowhere > 0 && (
        <Link to={{ view: "workloads" }}>{counted(nowhere, "workload")} without a place</Link>
      )}
      <SinceYesterday api={api} fleet={fleet} />
    </Panel>
  );
}

function RolloutLine({ rollout }: { rollout: Rollout }) {
  const { optimization, step, steps, paused, waiting_for } = rollout;
  return (
    <div class="rollout">
      <Link to={{ view: "rollouts" }}>
        {optimization}: step {step} of {steps.length}
        {paused ? ", paused" : ""}
      </Link>
      <progress aria-label={`Steps of ${optimization}`} max={steps.length} value={step} />
      {waiting_for?.[0] && (
        <p class="clip" title={waiting_for[0].message}>
          <Said of={waiting_for[0].message} />
        </p>
      )}
    </div>
  );
}

function Gain({ api, fleet }: Props) {
  const [call, readAgain] = usePolled(() => api.kept(fleet.namespace), [api, fleet.namespace]);
  // Gains of different objectives do not compare, and have no sum.
  const kept = [...(call.answer ?? [])].sort((one, other) => +gains(other) - +gains(one));
  const known = kept.every((item) => (item.status.gain ?? null) !== null);
  return (
    <Panel title="What would a better plan gain?" class="gain">
      <Unread call={call} />
      {kept.length > 0 && !kept.some(gains) && (
        <p class="lead">{known ? noGain(kept) : "Not known yet."}</p>
      )}
      {kept.slice(0, 2).map((item) => (
        <div key={item.name} class="offer">
          {gains(item) && (
            <span class="lead" title={gainTold(item)}>
              <b>+{figure(item.status.gain!)}</b> {BY_MEANS}
            </span>
          )}{" "}
          <Link to={{ view: "kept", offer: item.waiting, step: "" }} title={item.effect}>
            {item.name}: {offered(item)}
          </Link>
          {item.waiting && !item.approved && (
            <ApproveKept api={api} item={item} onDone={readAgain} />
          )}
        </div>
      ))}
      {kept.length > 2 && <Link to={{ view: "kept" }}>{kept.length - 2} more</Link>}
      {call.answer?.length === 0 && <AskForPlan api={api} fleet={fleet} />}
    </Panel>
  );
}

/** What is on offer, or why it is not taken. */
function offered(item: Kept): string {
  if (item.waiting && !item.approved) return `it ${item.effect}`;
  const applied = item.status.conditions?.find(({ type }) => type === "Applied");
  return gains(item) && applied?.status === "True" ? "no move gains enough" : item.reason;
}

/** Why nothing is on offer: it is being made, or no plan is worth more; what still lacks a place is told. */
function noGain(kept: Kept[]): string {
  if (kept.some(({ reason }) => reason === "RolloutInProgress")) {
    return "A better plan is being rolled out. What is left to gain is known after it.";
  }
  const lacking = kept.reduce((sum, { status }) => sum + (status.plan?.unplaced ?? 0), 0);
  const left = lacking ? ` It leaves ${counted(lacking, "workload")} without a place.` : "";
  return `Nothing ${BY_MEANS}: no plan is worth over 0.1 % more than what runs.${left}`;
}

function gains({ status }: Kept): boolean {
  return (status.gain ?? 0) > 0;
}

/** Where nothing is kept by itself, a plan says what could be gained. */
function AskForPlan({ api, fleet }: Props) {
  const [call, start] = useCall<Answered>();
  const [progress, tell] = useState("");
  const plan = call.answer?.plan;
  if (plan && !call.running) {
    return (
      <>
        <p>
          {plan.status}: {effects(plan.moves)}.
        </p>
        <Link to={{ view: "whatif", ...wishParts(NOTHING_CHANGED) }}>Look at the plan</Link>
      </>
    );
  }
  if (fleet.scores.length === 0) return <p>No plan can be made before there are scores.</p>;
  return (
    <>
      <p>Nothing is kept placed by itself. A plan tells, and writes nothing.</p>
      {call.running ? (
        <Busy what={progress || "Planning"} />
      ) : (
        <button
          type="button"
          onClick={() => start(() => answered(api, fleet, NOTHING_CHANGED, undefined, tell))}
        >
          Plan by the scores in force
        </button>
      )}
      {call.problem && <ProblemNotice problem={call.problem} />}
    </>
  );
}

function Unread({ call }: { call: Call<unknown> }) {
  if (call.problem) return <p class="bad">{call.problem.detail || call.problem.title}</p>;
  return call.answer ? null : <Busy what="Reading" />;
}
