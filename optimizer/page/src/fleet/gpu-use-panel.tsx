import { useMemo } from "preact/hooks";
import type { Fleet } from "../api/wire";
import { Choice } from "../parts/choice";
import { Command } from "../parts/command";
import { Panel } from "../parts/panel";
import { figure } from "../parts/sentences";
import { type Part, StackedBar } from "../parts/stacked-bar";
import { useAddress } from "../parts/use-address";
import { groupingOf, labelGroupings, labelOf } from "./drawn-groups";
import { type GpuUse, gpuUse, tenths, useTold } from "./gpu-use";

const TITLE = "How well are GPUs used?";

/** Models or groups that the panel has place for. */
const LINES = 5;

/** How many GPUs run, idle and are free, by model, or by the label by which the drawing is grouped. */
export function GpuUsePanel({ fleet }: { fleet: Fleet }) {
  const [group, setGroup] = useAddress("group");
  const options = useMemo(
    () => ({ "": "GPU model", ...labelGroupings(fleet.clusters) }) as Record<string, string>,
    [fleet],
  );
  const label = groupingOf(options, group);
  const use = useMemo(
    () =>
      gpuUse(fleet, (row, model) => (label ? labelOf(fleet.clusters[row]!.labels, label) : model)),
    [fleet, label],
  );
  if (!use) {
    return (
      <Panel title={TITLE} class="use">
        <p>No cluster reports what its nodes have. Agents do once their inventory is on:</p>
        <Command text={INVENTORY} />
      </Panel>
    );
  }
  const measured = use.some(({ idle }) => idle !== null);
  const notCounted = fleet.capacity?.fleet.not_counted;
  const broken = use.some(({ unavailable }) => unavailable > 0);
  return (
    <Panel
      title={TITLE}
      class="use"
      control={<Choice label="By" value={label} options={options} onChange={setGroup} />}
    >
      {use.length === 0 && <p class="lead">No node that takes Pods has a GPU.</p>}
      {use.length > 0 && (
        <table class="uses">
          <thead>
            <tr>
              <th scope="col">
                <span class="unseen">{options[label]}</span>
              </th>
              <td class="share" />
              <Head name={measured ? "running" : "reserved"} tone="used" />
              {measured && <Head name="idle" tone="idle" title={IDLE} />}
              <Head name="free" tone="free" />
              {broken && <Head name="no Pods" tone="broken" title="On nodes that take no Pods" />}
              <th scope="col">GPUs</th>
            </tr>
          </thead>
          <tbody>
            {use.slice(0, LINES).map((item) => (
              <tr key={item.name} title={devicesTold(item)}>
                <th scope="row" title={item.name}>
                  {item.name}
                </th>
                <td class="share">
                  <StackedBar parts={partsOf(item)} said={`${item.name}: ${useTold(item)}`} />
                </td>
                {measured && item.idle === null ? (
                  <td colSpan={2} title="What of it is idle is not measured">
                    {tenths(item.running)} reserved
                  </td>
                ) : (
                  <>
                    <td>{tenths(item.running)}</td>
                    {measured && <td>{tenths(item.idle ?? 0)}</td>}
                  </>
                )}
                <td>
                  <b>{tenths(item.free)}</b>
                </td>
                {broken && <td>{tenths(item.unavailable)}</td>}
                <td>{tenths(item.capacity)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <p class="count">
        {use.length > LINES && `${use.length - LINES} more below. `}
        {use.length > 0 && !measured && "What is idle is not measured: no score gpu-idle. "}
        {use.some(({ running, free }) => running % 1 || free % 1) &&
          `${TENTHS}${measured ? ", idle by its part of the day" : ""}. `}
        {notCounted && `Not in these sums: ${notCounted}`}
      </p>
    </Panel>
  );
}

const INVENTORY =
  "helm upgrade dynamic-scoring-framework CHART --namespace open-cluster-management --reuse-values --set spokeSetting.agent.inventory.enabled=true";

const IDLE =
  "Reserved, but computing nothing on average of the last day, as the score gpu-idle tells";

/** Why there are tenths of GPUs, on a line that other sentences need, too. */
const TENTHS = "A MIG device counts by its memory";

function Head({ name, tone, title }: { name: string; tone: Part["tone"]; title?: string }) {
  return (
    <th scope="col" title={title}>
      <span class={`swatch fill-${tone}`} aria-hidden="true" />
      {name}
    </th>
  );
}

function partsOf(item: GpuUse): Part[] {
  return [
    ...(item.idle === null
      ? [{ name: "reserved", amount: item.running, tone: "others" as const }]
      : [
          { name: "running", amount: item.running, tone: "used" as const },
          { name: "idle", amount: item.idle, tone: "idle" as const },
        ]),
    { name: "free", amount: item.free, tone: "free" },
    { name: "unavailable", amount: item.unavailable, tone: "broken" },
  ];
}

function devicesTold({ devices }: GpuUse): string {
  return [...devices]
    .map(([device, { capacity, free }]) => `${device}: ${figure(free)} free of ${figure(capacity)}`)
    .join("\n");
}
