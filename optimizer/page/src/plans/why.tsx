import type { OptimizerApi } from "../api/optimizer-api";
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
  onClose: () => void;
}

/** Explains a workload's place by the newest applied plan, solved again with today's scores. */
export function Why({ api, namespace, workload, cluster, onClose }: Props) {
  const call = useLoaded(
    () => explained(api, namespace, workload, cluster),
    [api, namespace, workload, cluster],
  );
  const title = cluster ? `Why is ${workload} not on ${cluster}?` : `Why is ${workload} there?`;
  return (
    <Dialog title={title} onClose={onClose}>
      {call.running && <Busy what="Solving the last plan's request again" />}
      {call.problem && <ProblemNotice problem={call.problem} />}
      {call.answer?.explanation && (
        <WorkloadExplanation explanation={call.answer.explanation} workload={workload} />
      )}
      {call.answer === null && !call.running && !call.problem && (
        <p>No plan was applied to namespace {namespace} yet. “What if” makes one.</p>
      )}
    </Dialog>
  );
}

async function explained(api: OptimizerApi, namespace: string, workload: string, cluster: string) {
  const plans = await api.plans(namespace);
  const [newest] = [...plans].sort((one, other) =>
    (other.created ?? "").localeCompare(one.created ?? ""),
  );
  if (!newest) return null;
  const { request } = await api.record(namespace, newest.digest);
  return api.explain(request, cluster ? [{ workload, cluster }] : []);
}
