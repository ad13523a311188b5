import type { Fleet, FleetWorkload } from "../api/wire";
import { byNaturalOrder } from "../parts/natural-order";
import { Table } from "../parts/table";

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
  const ordered = [...fleet.workloads].sort((one, other) => byNaturalOrder(one.name, other.name));
  const rows = ordered.map((item) => ({
    key: item.name,
    cells: [item.name, item.requests, where(item), <WhyButton item={item} onWhy={onWhy} />],
  }));
  return (
    <Table
      caption={`Workloads of namespace ${fleet.namespace}`}
      heads={["Workload", "Needs", "Where", "Reason"]}
      rows={rows}
    />
  );
}

function where(item: FleetWorkload): string {
  const places = Object.entries(item.places).map(([cluster, state]) => `${cluster} (${state})`);
  return places.join(", ") || item.unplaced;
}

function WhyButton(props: {
  item: FleetWorkload;
  onWhy: (workload: string, cluster: string) => void;
}) {
  const { name, places } = props.item;
  return (
    <button type="button" onClick={() => props.onWhy(name, "")}>
      {Object.keys(places).length ? "Why here?" : "Why nowhere?"}
    </button>
  );
}
