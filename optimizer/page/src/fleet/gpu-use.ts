import type { Fleet } from "../api/wire";
import { byNaturalOrder } from "../parts/natural-order";
import { figure } from "../parts/sentences";

/** How well GPUs are used. Amounts are in GPUs: a MIG device is its part of one. */
export interface GpuUse {
  name: string;
  capacity: number;
  /** Reserved, without what is idle. */
  running: number;
  /** Reserved, but idle on average of the last day; null: not measured. */
  idle: number | null;
  free: number;
  /** On nodes that take no Pods, besides. */
  unavailable: number;
  /** GPUs of each model. */
  models: Map<string, { running: number; idle: number | null; free: number }>;
  /** What is there and free of each device. */
  devices: Map<string, { capacity: number; free: number }>;
}

const GPU = /gpu|\/mig-|gaudi|\.xe$/;

/**
 * What current inventories tell of GPUs, by a name of each: it is given the position of the cluster and the
 * GPU model. null: no cluster has an inventory.
 */
export function gpuUse(
  fleet: Fleet,
  nameOf: (row: number, model: string) => string,
): GpuUse[] | null {
  if (!fleet.capacity) return null;
  const parts = partsOfGpus(fleet);
  const expired = new Set(fleet.capacity.expired);
  const found = new Map<string, GpuUse>();
  for (const item of fleet.capacity.resources) {
    if (!item.model && !GPU.test(item.resource)) continue;
    const device = item.resource.replace(/^.*\/(mig-)?/, "");
    const model = item.model || device;
    const part = parts.get(device) ?? 1;
    item.capacity.forEach((capacity, row) => {
      const unavailable = item.unavailable[row] ?? 0;
      if (expired.has(row) || !(capacity || unavailable)) return;
      const name = nameOf(row, model);
      let use = found.get(name);
      if (!use) {
        const none = { running: 0, idle: null, free: 0 };
        const all = { ...none, capacity: 0, unavailable: 0 };
        found.set(name, (use = { name, ...all, models: new Map(), devices: new Map() }));
      }
      const free = item.free[row] ?? 0;
      const reserved = (item.ours[row] ?? 0) + (item.others[row] ?? 0);
      const hours = item.idle[row] ?? null;
      const idle = hours === null ? null : Math.min(reserved, hours / 24);
      use.capacity += part * capacity;
      use.unavailable += part * unavailable;
      const ofModel = use.models.get(model) ?? { running: 0, idle: null, free: 0 };
      use.models.set(model, ofModel);
      for (const one of [use, ofModel]) {
        one.running += part * (reserved - (idle ?? 0));
        one.free += part * free;
        if (idle !== null) one.idle = (one.idle ?? 0) + part * idle;
      }
      const known = use.devices.get(device) ?? { capacity: 0, free: 0 };
      use.devices.set(device, { capacity: known.capacity + capacity, free: known.free + free });
    });
  }
  return [...found.values()].sort((one, other) => byNaturalOrder(one.name, other.name));
}

/** GPUs, of which MIG devices are parts; of many, the whole ones. */
export function tenths(gpus: number): string {
  return figure(gpus < 100 ? Math.round(10 * gpus) / 10 : Math.round(gpus));
}

/** `12 running, 2 idle, 6 free of 20 GPUs`. */
export function useTold(use: GpuUse): string {
  const { capacity, unavailable } = use;
  const besides = unavailable ? `, ${tenths(unavailable)} on nodes that take no Pods` : "";
  return `${amountsTold(use)} of ${tenths(capacity)} GPUs${besides}`;
}

/** `A100-80GB: 12 running, 2 idle, 6 free`, for each model. */
export function modelsTold({ models }: GpuUse): string {
  const sorted = [...models].sort(([one], [other]) => byNaturalOrder(one, other));
  return sorted.map(([model, use]) => `${model}: ${amountsTold(use)}`).join(" · ");
}

function amountsTold({ running, idle, free }: Pick<GpuUse, "running" | "idle" | "free">): string {
  const used =
    idle === null
      ? `${tenths(running)} reserved`
      : `${tenths(running)} running, ${tenths(idle)} idle`;
  return `${used}, ${tenths(free)} free`;
}

/** By MIG device, the part of a GPU's memory that it is. */
function partsOfGpus(fleet: Fleet): Map<string, number> {
  return new Map(
    (fleet.layouts ?? []).flatMap(({ memory, slices }) =>
      slices.map((slice): [string, number] => [slice.device, slice.memory / memory]),
    ),
  );
}
