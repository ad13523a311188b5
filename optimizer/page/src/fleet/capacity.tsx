import type { Fleet, ResourceCapacity } from "../api/wire";
import { StackedBar } from "../parts/stacked-bar";
import { Table } from "../parts/table";
import { duration } from "../parts/times";

const HEADS = [
  "Resource",
  "Reserved",
  "Free",
  "Most on one node",
  "Ours",
  "Others",
  "Unavailable",
  "Idle hours a day",
];

/** What the fleet has, by resource and GPU model; nothing where no cluster has an inventory. */
export function FleetCapacity({ fleet }: { fleet: Fleet }) {
  const found = fleet.capacity?.fleet;
  if (!found) return null;
  const expired = found.expired ? `, without ${found.expired} whose inventory has expired` : "";
  return (
    <section aria-label="Capacity">
      <Resources
        caption={`Capacity of ${found.current} cluster${found.current === 1 ? "" : "s"}${expired}`}
        rows={found.resources.map((item) => ({ ...item, where: item.largest_on }))}
      />
      {found.omitted > 0 && <p>{found.omitted} more resources are left out.</p>}
    </section>
  );
}

/** What a cluster has; `row` is its position in the fleet. */
export function CapacityOfCluster({ fleet, row }: { fleet: Fleet; row: number }) {
  const found = fleet.capacity;
  const observed = found?.observed[row] ?? null;
  if (!found || observed === null) return <p>No NodeInventory tells what its nodes have.</p>;
  const age = `seen ${duration(Math.max(0, Date.now() / 1000 - observed))} ago`;
  const expired = found.expired.includes(row);
  const rows = found.resources
    .map((item) => ({
      resource: item.resource,
      model: item.model,
      capacity: item.capacity[row] ?? 0,
      ours: item.ours[row] ?? 0,
      others: item.others[row] ?? 0,
      free: item.free[row] ?? 0,
      largest_free: item.largest_free[row] ?? 0,
      unavailable: item.unavailable[row] ?? 0,
      idle: item.idle[row] ?? null,
    }))
    .filter((item) => item.capacity || item.unavailable);
  return (
    <Resources
      caption={`Capacity, ${age}${expired ? ": expired, plans do not rely on it" : ""}`}
      rows={rows}
    />
  );
}

function Resources(props: { caption: string; rows: (ResourceCapacity & { where?: string })[] }) {
  return (
    <Table
      caption={props.caption}
      heads={HEADS}
      rows={props.rows.map((item) => {
        const said = (amount: number) => shownAmount(item.resource, amount);
        const where = item.where && item.largest_free ? ` (${item.where})` : "";
        return {
          key: `${item.resource} ${item.model}`,
          cells: [
            [item.resource, item.model].filter(Boolean).join(" "),
            <Bar item={item} />,
            `${said(item.free)} of ${said(item.capacity)}`,
            said(item.largest_free) + where,
            said(item.ours),
            said(item.others),
            said(item.unavailable),
            item.idle ?? "not measured",
          ],
        };
      })}
    />
  );
}

/** Reserved by ManifestWorks, reserved by others, and free, as parts of the whole. */
function Bar({ item }: { item: ResourceCapacity }) {
  const { capacity, ours, others } = item;
  const percent = Math.round((100 * (ours + others)) / (Math.max(capacity, ours + others) || 1));
  const free = Math.max(0, capacity - ours - others);
  return (
    <StackedBar
      said={`${percent}% reserved`}
      parts={[
        { name: "ours", amount: ours, tone: "used" },
        { name: "others", amount: others, tone: "others" },
        { name: "free", amount: free, tone: "free" },
      ]}
    />
  );
}

/** Memory in GiB, other resources as a number. */
function shownAmount(resource: string, amount: number): string {
  return resource === "memory"
    ? `${+(amount / 2 ** 30).toPrecision(4)}Gi`
    : `${+amount.toPrecision(6)}`;
}
