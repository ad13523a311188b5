import type { Fleet, FleetWorkload } from "../api/wire";
import { Search } from "../parts/choice";
import { byNaturalOrder } from "../parts/natural-order";
import { counted } from "../parts/sentences";
import { Table } from "../parts/table";
import { useAddress } from "../parts/use-address";
import type { FleetChanges } from "./fleet-changes";
import { freshClass } from "./score-grid";

/** Rows that are shown at once: what is found is shown, whatever its place. */
const MAX_ROWS = 500;

/** Workloads of the namespace: where each is, or why it is nowhere; those without a place first. */
export function Workloads(props: {
  fleet: Fleet;
  changes: FleetChanges;
  onWhy: (workload: string, cluster: string) => void;
}) {
  const { fleet, changes, onWhy } = props;
  const [filter, setFilter] = useAddress("find");
  if (fleet.workloads.length === 0) {
    return (
      <p class="notice">
        Namespace {fleet.namespace} has no ManifestWorkReplicaSet with the labels of a request.
      </p>
    );
  }
  const wanted = filter.trim().toLowerCase();
  const found = fleet.workloads
    .filter((item) => `${item.name} ${where(item)}`.toLowerCase().includes(wanted))
    .sort((one, other) => rank(one) - rank(other) || byNaturalOrder(one.name, other.name));
  const rows = found.slice(0, MAX_ROWS).map((item) => ({
    key: item.name,
    cells: [
      ...[item.name, item.requests, <div class="prose">{where(item)}</div>],
      <WhyButton workload={item.name} fleet={fleet} onWhy={onWhy} />,
    ],
    fresh: freshClass(changes.workloads, item.name, changes),
  }));
  return (
    <section aria-label="Workloads">
      <div class="controls">
        <Search
          label="Find"
          placeholder="workload, cluster, state"
          value={filter}
          onChange={setFilter}
        />
        <p class="legend">
          {found.length} of {counted(fleet.workloads.length, "workload")}
          {found.length > MAX_ROWS && `, the first ${MAX_ROWS} of them below`}
        </p>
      </div>
      <Table
        caption={`Workloads of namespace ${fleet.namespace}`}
        heads={["Workload", "Needs", "Where", "Reason"]}
        rows={rows}
      />
    </section>
  );
}

/** Nowhere first, then what a cluster refused, then what has not landed yet. */
function rank({ places }: FleetWorkload): number {
  const states = Object.values(places);
  if (states.length === 0) return 0;
  if (states.includes("Refused")) return 1;
  return states.some((state) => state !== "Landed") ? 2 : 3;
}

function where(item: FleetWorkload): string {
  const places = Object.entries(item.places).map(([cluster, state]) => `${cluster} (${state})`);
  return places.join(", ") || item.unplaced;
}

/** Explains where a workload is, or the cheapest change that gives it a place. */
export function WhyButton(props: {
  workload: string;
  fleet: Fleet;
  onWhy: (workload: string, cluster: string) => void;
}) {
  const { workload, fleet, onWhy } = props;
  return (
    <button type="button" onClick={() => onWhy(workload, "")}>
      {isPlaced(fleet, workload) ? "Why here?" : "Why nowhere?"}
    </button>
  );
}

/** Whether a workload has a place. */
export function isPlaced(fleet: Fleet, workload: string): boolean {
  const found = fleet.workloads.find((item) => item.name === workload);
  return Object.keys(found?.places ?? {}).length > 0;
}
