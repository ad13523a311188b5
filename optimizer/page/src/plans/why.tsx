import { useEffect, useState } from "preact/hooks";
import { ApiProblem, type OptimizerApi } from "../api/optimizer-api";
import { Command, commandOf } from "../parts/command";
import { Dialog } from "../parts/dialog";
import { Busy, ProblemNotice } from "../parts/notice";
import { Said } from "../parts/said";
import { useLoaded } from "../parts/use-call";
import { WorkloadExplanation } from "./explanation-view";

interface Props {
  api: OptimizerApi;
  namespace: string;
  workload: string;
  /** The cluster that it is not on; empty: why is it where it is? */
  cluster: string;
  /** Whether it has a place, and if not, what the newest plan says of it. */
  placed: boolean;
  recorded: string;
  onClose: () => void;
}

/** Applied plans that are looked at for the newest one that planned the workload. */
const MAX_LOOKED_AT = 10;

/** Explains a workload's place by the newest plan that was asked for it, solved with today's scores. */
export function Why({ api, namespace, workload, cluster, placed, recorded, onClose }: Props) {
  const inputs = [api, namespace, workload, cluster];
  const [seconds, count] = useState(0);
  const [stop] = useState(() => new AbortController());
  const call = useLoaded(
    () => within(stop.signal, explained(api, namespace, workload, cluster, stop.signal)),
    inputs,
  );
  useEffect(() => {
    const timer = setInterval(() => count((before) => before + 1), 1000);
    return () => (clearInterval(timer), stop.abort());
  }, []);
  useEffect(() => {
    if (seconds >= LONGEST) stop.abort();
  }, [seconds]);
  const nowhere = !cluster && !placed;
  const looking = nowhere
    ? "Looking for the cheapest change that gives it a place"
    : "Solving the last plan's request again";
  const where = cluster ? `not on ${cluster}` : placed ? "there" : "nowhere";
  return (
    <Dialog title={`Why is ${workload} ${where}?`} onClose={onClose}>
      {nowhere && recorded && (
        <p>
          <Said of={recorded} />
        </p>
      )}
      {call.running && <Busy what={`${looking}: ${seconds} s, at most ${LONGEST} s`} />}
      {call.problem && <ProblemNotice problem={call.problem} />}
      {call.answer?.explanation && (
        <WorkloadExplanation explanation={call.answer.explanation} workload={workload} />
      )}
      {call.answer === null && !call.running && !call.problem && (
        <p>
          No applied plan of namespace {namespace} was asked for {workload}. “What if” makes one.
        </p>
      )}
      <Command
        text={
          cluster
            ? commandOf`dsf why ${workload} ${cluster} -n ${namespace}`
            : commandOf`dsf why ${workload} -n ${namespace}`
        }
      />
    </Dialog>
  );
}

/** Seconds after which nobody waits for a solver any more. */
const LONGEST = 60;

/** What comes of work before the signal ends it. */
function within<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  const late = new Promise<never>((_, refuse) => {
    signal.addEventListener("abort", () =>
      refuse(
        new ApiProblem({
          ...{ title: "Nothing was found in time", status: 0 },
          detail: `The solver found nothing within ${LONGEST} s. The command below waits as long as the solver may.`,
        }),
      ),
    );
  });
  return Promise.race([late, work]);
}

async function explained(
  api: OptimizerApi,
  namespace: string,
  workload: string,
  cluster: string,
  signal: AbortSignal,
) {
  const plans = await api.plans(namespace);
  for (const plan of plans.slice(0, MAX_LOOKED_AT)) {
    const { request } = await api.record(namespace, plan.digest);
    const planned = request.targetWorkloads?.some((item) => item.name === workload);
    const whyNot = cluster ? [{ workload, cluster }] : [];
    const asked = { explain: false, explainWorkloads: [workload], whyNot };
    if (planned) return api.explain(request, asked, signal);
  }
  return null;
}
