import type { Fleet } from "../api/wire";

/** Workloads of the namespace: where each is, or why it is nowhere. */
export function Workloads(props: {
  fleet: Fleet;
  onWhy: (workload: string, cluster: string) => void;
}) {
  const { fleet, onWhy } = props;
  if (fleet.workloads.length === 0) {
    return (
      <p class="notice">
        Namespace {fleet.namespace} has no ManifestWorkReplicaSet with the labels of a request.
      </p>
    );
  }
  return (
    <table>
      <caption>Workloads of namespace {fleet.namespace}</caption>
      <thead>
        <tr>
          <th scope="col">Workload</th>
          <th scope="col">Needs</th>
          <th scope="col">Where</th>
          <th scope="col">
            <span class="unseen">Ask</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {fleet.workloads.map((item) => (
          <tr key={item.name}>
            <th scope="row">{item.name}</th>
            <td>{item.requests}</td>
            <td>
              {Object.entries(item.places)
                .map(([cluster, state]) => `${cluster} (${state})`)
                .join(", ") || item.unplaced}
            </td>
            <td>
              <button type="button" onClick={() => onWhy(item.name, "")}>
                {Object.keys(item.places).length ? "Why here?" : "Why nowhere?"}
              </button>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
