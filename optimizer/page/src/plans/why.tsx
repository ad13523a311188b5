import type { OptimizerApi } from "../api/optimizer-api";
import { Command, commandOf } from "../parts/command";
import { Dialog } from "../parts/dialog";
import { Busy, ProblemNotice } from "../parts/notice";
import { useLoaded } from "../parts/use-call";
import { WorkloadExplanation } from "./explanation-view";

interface Props {
  api: OptimizerApi;
  namespace: string;
  workload: string;
  /** The cluster that it is not on; empty: why is it where it is? */
  cluster: string;
  /** Whether it has a place. */
  placed: boolean;
  onClose: () => void;
}

/** Applied plans that are looked at for the newest one that planned the workload. */
const MAX_LOOKED_AT = 10;

/** Explains a workload's place by the newest plan that was asked for it, solved with today's scores. */
export function Why({ api, namespace, workload, cluster, placed, onClose }: Props) {
  const call = useLoaded(
    () => explained(api, namespace, workload, cluster),
    [api, namespace, workload, cluster],
  );
  const where = cluster ? `not on ${cluster}` : placed ? "there" : "nowhere";
  return (
    <Dialog title={`Why is ${workload} ${where}?`} onClose={onClose}>
      {call.running && <Busy what="Solving the last plan's request again" />}
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

async function explained(api: OptimizerApi, namespace: string, workload: string, cluster: string) {
  const plans = await api.plans(namespace);
  for (const plan of plans.slice(0, MAX_LOOKED_AT)) {
    const { request } = await api.record(namespace, plan.digest);
    const planned = request.targetWorkloads?.some((item) => item.name === workload);
    const whyNot = cluster ? [{ workload, cluster }] : [];
    const asked = { explain: false, explainWorkloads: [workload], whyNot };
    if (planned) return api.explain(request, asked);
  }
  return null;
}
