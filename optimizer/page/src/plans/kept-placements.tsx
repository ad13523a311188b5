import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { OptimizerApi } from "../api/optimizer-api";
import type { Fleet, Kept } from "../api/wire";
import { Ago } from "../parts/ago";
import { Command, commandOf } from "../parts/command";
import { Dialog } from "../parts/dialog";
import { Link } from "../parts/link";
import { Busy, ProblemNotice } from "../parts/notice";
import { Said } from "../parts/said";
import { shown } from "../fleet/score-colour";
import { sentence } from "../parts/sentences";
import { Table } from "../parts/table";
import { duration, secondsSince } from "../parts/times";
import { useAddress } from "../parts/use-address";
import { useCall, useLoaded, usePolled } from "../parts/use-call";
import { BY_MEANS, gainTold } from "./gain-told";
import { PlanView } from "./plan-view";

const HEADS = [
  ...[
    "PlacementOptimization",
    "Fine",
    `Gain ${BY_MEANS}, at the last look`,
    "Why nothing more moves",
  ],
  ...["Next look", "Moves left", "Last change by itself", "Waiting plan"],
];

/** What is kept placed by itself: one row for each PlacementOptimization. */
export function KeptPlacements({ api, fleet }: { api: OptimizerApi; fleet: Fleet }) {
  const { namespace } = fleet;
  const [call, readAgain] = usePolled(() => api.kept(namespace), [api, namespace]);
  const [offer] = useAddress("offer");
  const opened = offer && call.answer?.find(({ waiting }) => waiting === offer);
  return (
    <>
      {call.problem && <ProblemNotice problem={call.problem} />}
      {!call.answer && !call.problem && <Busy what="Reading what is kept placed" />}
      {offer && call.answer && !opened && (
        <p class="notice">Plan {offer} is not on offer any more.</p>
      )}
      {call.answer?.length === 0 && (
        <p class="notice">
          Nothing is kept placed by itself. A <code>PlacementOptimization</code> declares what is.
        </p>
      )}
      {call.answer && call.answer.length > 0 && (
        <Table
          caption="Kept placed by itself"
          heads={HEADS}
          rows={call.answer.map((item) => ({
            key: item.name,
            cells: cells(
              item,
              <>
                <Link
                  to={{ view: "kept", offer: item.waiting, step: "" }}
                  current={offer === item.waiting}
                >
                  Look at it
                </Link>{" "}
                <ApproveKept api={api} item={item} onDone={readAgain} />
              </>,
            ),
          }))}
        />
      )}
      {opened && <WaitingPlan key={offer} api={api} fleet={fleet} item={opened} />}
    </>
  );
}

/** The plan that waits, drawn as any plan is. */
function WaitingPlan(props: { api: OptimizerApi; fleet: Fleet; item: Kept }) {
  const { api, fleet, item } = props;
  const call = useLoaded(() => api.waitingPlan(item), [api, item.waiting]);
  return (
    <section aria-label={`The plan of ${item.name} that waits`}>
      <h2>The plan of {item.name} that waits</h2>
      {call.problem && <ProblemNotice problem={call.problem} />}
      {!call.answer && !call.problem && <Busy what="Reading the plan" />}
      {call.answer && (
        <PlanView
          api={null}
          fleet={fleet}
          shown={{ ...call.answer, request: null }}
          by={gainTold(item)}
          onApplied={() => {}}
        />
      )}
    </section>
  );
}

/** Approves the plan that waits, after a second click on what it changes. */
export function ApproveKept(props: { api: OptimizerApi; item: Kept; onDone: () => void }) {
  const { api, item, onDone } = props;
  const [asked, setAsked] = useState<Kept | null>(null);
  const [done, start] = useCall<Kept>();
  const confirm = async (shown: Kept) => {
    setAsked(null);
    await start(() => api.approve(shown));
    onDone();
  };
  return (
    <>
      <button type="button" disabled={done.running} onClick={() => setAsked(item)}>
        Approve…
      </button>
      {done.problem && <ProblemNotice problem={done.problem} />}
      {asked && (
        <Dialog title={`Approve the plan of ${asked.name}?`} onClose={() => setAsked(null)}>
          <p>
            It {asked.effect}. It counts {BY_MEANS}.
          </p>
          <p>Digest: {asked.waiting}</p>
          <Command text={approving(asked)} />
          <button type="button" class="primary" onClick={() => confirm(asked)}>
            Approve
          </button>
        </Dialog>
      )}
    </>
  );
}

/** The command that approves the same plan. */
function approving({ name, namespace, waiting }: Kept): string | null {
  return commandOf`kubectl annotate placementoptimization ${name} -n ${namespace} --overwrite dynamic-scoring.open-cluster-management.io/approved-digest=${waiting}`;
}

/** What is not fine: how many workloads lack a place, or the reason; the whole of it where it is not beside. */
function Wrong({ item }: { item: Kept }) {
  const [reason] = item.wrong.split(":");
  const { unplaced = 0, workloads = 0 } = item.status.plan ?? {};
  return (
    <span class="bad" title={item.wrong}>
      no: {reason === "Unplaced" ? `${unplaced} of ${workloads} workloads without a place` : reason}
    </span>
  );
}

function cells(item: Kept, approve: ComponentChildren) {
  const { gain, nextLook, movesLeft, lastChange } = item.status;
  return [
    `${item.name} (${item.mode})`,
    item.fine ? <span class="good">yes</span> : <Wrong item={item} />,
    shown(gain ?? null),
    <>
      {item.reason}: <Said of={item.message} /> {item.waiting ? "" : sentence(item.move_rule)}
    </>,
    nextLook ? `in ${duration(-secondsSince(nextLook))}` : "at a change",
    movesLeft ?? "any",
    lastChange ? <Ago time={lastChange} /> : "never",
    item.approved ? "approved" : item.waiting && approve,
  ];
}
