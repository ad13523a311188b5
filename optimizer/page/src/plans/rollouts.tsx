import { useState } from "preact/hooks";
import type { OptimizerApi } from "../api/optimizer-api";
import type { Rollout, RolloutCommand, StepActions } from "../api/wire";
import { Ago } from "../parts/ago";
import { Command, commandOf } from "../parts/command";
import { Dialog } from "../parts/dialog";
import { Busy, ProblemNotice } from "../parts/notice";
import { Said } from "../parts/said";
import { useCall, usePolled } from "../parts/use-call";
import "./rollouts.css";
import { shownSteps } from "./step-spans";

const MEANING: Record<RolloutCommand, string> = {
  pause: "No further step begins until it is resumed.",
  resume: "The steps go on.",
  undo: "The steps that were made are taken back, the last one first.",
  cancel: "The rollout ends where it is. What was written stays.",
};

/** Plans that are applied step by step. */
export function Rollouts({ api, namespace }: { api: OptimizerApi; namespace: string }) {
  const [call] = usePolled(() => api.rollouts(namespace), [api, namespace]);
  return (
    <>
      {call.problem && <ProblemNotice problem={call.problem} />}
      {!call.answer && !call.problem && <Busy what="Reading the rollouts" />}
      {call.answer?.length === 0 && (
        <p class="notice">
          No plan is applied step by step. A request with <code>rollout: Stepwise</code> makes a
          rollout.
        </p>
      )}
      {call.answer?.map((item) => (
        <RolloutCard key={item.optimization} api={api} rollout={item} />
      ))}
    </>
  );
}

function RolloutCard({ api, rollout }: { api: OptimizerApi; rollout: Rollout }) {
  const [asked, setAsked] = useState<RolloutCommand | null>(null);
  const [call, start] = useCall<Rollout>();
  const confirm = async (command: RolloutCommand) => {
    setAsked(null);
    await start(() => api.command(rollout, command));
  };
  return (
    <article class="card">
      <h2>
        {rollout.optimization}{" "}
        <span class="phase">{rollout.paused ? "Paused" : rollout.phase}</span>
      </h2>
      <label>
        Step {rollout.step} of {rollout.steps.length}
        <progress max={rollout.steps.length} value={rollout.step} />
      </label>
      <p>
        <Said of={rollout.message} />
      </p>
      {rollout.waiting_for.map((item) => (
        <p key={item.message}>
          Waits for {item.reason}
          {item.since && (
            <>
              , which began <Ago time={item.since} />
            </>
          )}
          : <Said of={item.message} />
        </p>
      ))}
      <ol class="steps">
        {shownSteps(rollout, Date.now()).map((step) => (
          <li key={step.number} aria-current={step.current ? "step" : undefined}>
            <span>{actions(step.actions)}</span>
            <span class="track" aria-hidden="true">
              {step.bars.map(({ start, width, back, open }, at) => (
                <span
                  key={at}
                  class={`span ${back ? "back" : ""} ${open ? "open" : ""}`}
                  style={{ left: `${start * 100}%`, width: `${width * 100}%` }}
                />
              ))}
            </span>
            <span class="took">{step.told}</span>
          </li>
        ))}
      </ol>
      {rollout.phase === "Progressing" &&
        commands(rollout).map((command) => (
          <button key={command} type="button" onClick={() => setAsked(command)}>
            {command}…
          </button>
        ))}
      {call.problem && <ProblemNotice problem={call.problem} />}
      {asked && (
        <Dialog
          title={`${asked} the rollout of ${rollout.optimization}?`}
          onClose={() => setAsked(null)}
        >
          <p>{MEANING[asked]}</p>
          <Command
            text={commandOf`dsf rollout ${asked} --optimization ${rollout.optimization} -n ${rollout.namespace}`}
          />
          <button type="button" class="primary" onClick={() => confirm(asked)}>
            {asked}
          </button>
        </Dialog>
      )}
    </article>
  );
}

function commands(rollout: Rollout): RolloutCommand[] {
  const first: RolloutCommand = rollout.paused ? "resume" : "pause";
  return rollout.turning_back ? [first, "cancel"] : [first, "undo", "cancel"];
}

function actions(step: StepActions): string {
  const said = [
    ...step.stop.map((item) => `stop ${item.workload} on ${item.cluster}`),
    ...step.release.map((item) => `release ${item.policy} on ${item.cluster}`),
    ...step.enforce.map((item) => `enforce ${item.policy} on ${item.cluster}`),
    ...step.start.map((item) => `start ${item.workload} on ${item.cluster}`),
    ...step.keep.map((item) => `keep ${item.workload} on ${item.cluster}`),
  ];
  return said.join(", ") || "write what does not change where anything runs";
}
