import { useEffect, useRef, useState } from "preact/hooks";
import type { OptimizerApi } from "../api/optimizer-api";
import type { Plan, PlanRecord, PlanSummary } from "../api/wire";
import { Ago } from "../parts/ago";
import { commandOf } from "../parts/command";
import { Link } from "../parts/link";
import { Busy, ProblemNotice } from "../parts/notice";
import { Said } from "../parts/said";
import { counted, figure } from "../parts/sentences";
import { useAddress } from "../parts/use-address";
import { useCall, useLoaded } from "../parts/use-call";
import { ConfirmChanges } from "./confirm-changes";
import { movesBetween, type ShownMove } from "./moves";
import { PlanCurves } from "./plan-curves";

/** Newest plans whose moves are read at once; older ones are read when they are opened. */
const OPENED = 5;

/** The plans that were applied, the newest first, with what each moved. */
export function PlanHistory({ api, namespace }: { api: OptimizerApi; namespace: string }) {
  const [reads, setReads] = useState(0);
  const [picked, setPicked] = useAddress("plan");
  const plans = useLoaded(() => api.plans(namespace), [api, namespace, reads]);
  if (plans.problem) return <ProblemNotice problem={plans.problem} />;
  if (!plans.answer) return <Busy what="Reading the plans" />;
  if (plans.answer.length === 0) {
    return (
      <p class="notice">No plan was applied to namespace {namespace} yet. “What if” makes one.</p>
    );
  }
  const items = [...plans.answer].sort((one, other) => other.revision - one.revision);
  const gone = picked && !items.some((item) => item.name === picked);
  return (
    <>
      <PlanCurves plans={plans.answer} onOpen={(plan) => setPicked(plan.name)} />
      {gone && (
        <p class="notice">
          Namespace {namespace} has no plan {picked}, or none any more.
        </p>
      )}
      <ol class="timeline" aria-label="Plans, the newest first">
        {items.map((item, position) => (
          <PlanEntry
            key={item.name}
            api={api}
            namespace={namespace}
            item={item}
            before={items.slice(position + 1).find((one) => comesBefore(one, item))}
            opened={position < OPENED}
            picked={item.name === picked}
            onChanged={() => setReads(reads + 1)}
          />
        ))}
      </ol>
    </>
  );
}

/** Whether a plan was in force as a whole before another one: what it planned ran then. */
function comesBefore({ optimization, phase, reason }: PlanSummary, later: PlanSummary): boolean {
  const restored = phase === "RolledBack" && reason !== "RolloutTurnedBack";
  const whole = phase === "Applied" || phase === "Superseded" || restored;
  return whole && optimization === later.optimization;
}

interface EntryProps {
  api: OptimizerApi;
  namespace: string;
  item: PlanSummary;
  before: PlanSummary | undefined;
  opened: boolean;
  /** It was chosen on a curve, or by the address. */
  picked: boolean;
  onChanged: () => void;
}

function PlanEntry({ api, namespace, item, before, opened, picked, onChanged }: EntryProps) {
  const [open, setOpen] = useState(opened);
  const entry = useRef<HTMLLIElement>(null);
  useEffect(() => {
    if (!picked) return;
    setOpen(true);
    entry.current?.focus();
    entry.current?.scrollIntoView({ block: "nearest" });
  }, [picked]);
  return (
    <li ref={entry} tabIndex={-1} class={`phase-${item.phase.toLowerCase()}`}>
      <h2>
        <Link to={{ view: "plans", plan: item.name }} current={picked}>
          {item.optimization} {item.revision}
        </Link>{" "}
        <span class="phase">{item.phase}</span>
      </h2>
      <p>
        {item.created && <Ago time={item.created} />}
        {item.requested_by && `, asked for by ${item.requested_by}`}, value {figure(item.objective)}
        {changed(item)}.{" "}
        {item.restored_revision !== null && `It restored plan ${item.restored_revision}. `}
        {item.message && (
          <>
            {item.phase === "Applied" ? "Its objects on the hub now: " : "What became of it: "}
            <Said of={item.message} />{" "}
          </>
        )}
        <Said of={item.solver_failure} />
      </p>
      <details open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>What it moved</summary>
        {open && <Moved api={api} namespace={namespace} item={item} before={before} />}
      </details>
      <RollBack api={api} namespace={namespace} item={item} onChanged={onChanged} />
    </li>
  );
}

/** What the record says of a plan's changes; nothing if an earlier version wrote it. */
function changed(item: PlanSummary): string {
  const told = [
    item.moves !== null && counted(item.moves, "move"),
    item.first_placements !== null && counted(item.first_placements, "first placement"),
    item.unplaced_workloads !== null && `${item.unplaced_workloads} unplaced`,
  ].filter(Boolean);
  return told.map((part) => `, ${part}`).join("");
}

function Moved(props: {
  api: OptimizerApi;
  namespace: string;
  item: PlanSummary;
  before: PlanSummary | undefined;
}) {
  const { api, namespace, item, before } = props;
  const call = useLoaded(async () => {
    const wanted = before ? [item, before] : [item];
    return Promise.all(wanted.map((one) => api.record(namespace, one.digest)));
  }, [api, namespace, item.digest, before?.digest]);
  if (call.problem) return <ProblemNotice problem={call.problem} />;
  if (!call.answer) return <Busy what="Reading the plan" />;
  return <MoveList records={call.answer} />;
}

function MoveList({ records: [record, before] }: { records: PlanRecord[] }) {
  if (!record) return null;
  const { moved, started, stopped, stayed } = movesBetween(before, record);
  return (
    <>
      {moved.length === 0 && <p>It moved nothing.</p>}
      <ul class="moves">
        {[...moved, ...stopped].map(({ workload, before, after }) => (
          <li key={workload} class="changed">
            {workload}: {after.length === 0 && "stopped on "}
            {before.join(", ")}
            {after.length > 0 && ` → ${after.join(", ")}`}
          </li>
        ))}
      </ul>
      <Placed moves={started} what="placed that had no place" />
      <Placed moves={stayed} what="stayed" />
    </>
  );
}

/** Workloads that were not moved: how many, and where each is once it is opened. */
function Placed({ moves, what }: { moves: ShownMove[]; what: string }) {
  if (moves.length === 0) return null;
  return (
    <details>
      <summary>
        {counted(moves.length, "workload")} {what}
      </summary>
      <ul class="moves">
        {moves.map((move) => (
          <li key={move.workload}>
            {move.workload}: {move.after.join(", ")}
          </li>
        ))}
      </ul>
    </details>
  );
}

function RollBack(props: {
  api: OptimizerApi;
  namespace: string;
  item: PlanSummary;
  onChanged: () => void;
}) {
  const { api, namespace, item, onChanged } = props;
  const [shown, show] = useCall<Plan>();
  const [done, apply] = useCall<Plan>();
  const [asking, setAsking] = useState(false);
  const ask = async () => {
    await show(() => api.rollback(item, namespace));
    setAsking(true);
  };
  const confirm = async () => {
    setAsking(false);
    await apply(() => api.rollback(item, namespace, shown.answer?.digest));
    onChanged();
  };
  const problem = asking ? shown.problem : done.problem;
  return (
    <>
      <button type="button" disabled={shown.running || done.running} onClick={ask}>
        Restore this plan…
      </button>
      {problem && <ProblemNotice problem={problem} />}
      {done.answer && (
        <p class="notice good" role="status">
          Restored as {done.answer.record}.
        </p>
      )}
      {asking && shown.answer && !problem && shown.answer.changes.length === 0 && (
        <p class="notice">The hub is already as this plan left it.</p>
      )}
      {asking && shown.answer && !problem && shown.answer.changes.length > 0 && (
        <ConfirmChanges
          title={`Restore plan ${item.optimization} ${item.revision}?`}
          moves={shown.answer.moves}
          changes={shown.answer.changes}
          command={commandOf`dsf rollback --optimization ${item.optimization} --to-revision ${String(item.revision)} -n ${namespace}`}
          onConfirm={confirm}
          onClose={() => setAsking(false)}
        />
      )}
    </>
  );
}
