import type { Fleet } from "../api/wire";
import { byNaturalOrder } from "../parts/natural-order";
import { figure } from "../parts/sentences";

/** How well GPUs of a model are used over the fleet. Amounts are in GPUs: a MIG device is its part of one. */
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
  /** What is free of each device, such as `3g.40gb: 2 of 8`. */
  devices: string[];
}

const GPU = /gpu|\/mig-|gaudi|\.xe$/;

/** What the inventories tell of GPUs, by model; null where no cluster has one. */
export function gpuUse(fleet: Fleet): GpuUse[] | null {
  if (!fleet.capacity) return null;
  const parts = partsOfGpus(fleet);
  const found = new Map<string, GpuUse>();
  for (const item of fleet.capacity.fleet.resources) {
    if (!item.model && !GPU.test(item.resource)) continue;
    const device = item.resource.replace(/^.*\/(mig-)?/, "");
    const name = item.model?.replace(/^NVIDIA-/, "") || device;
    const use = found.get(name) ?? {
      ...{ name, capacity: 0, running: 0, idle: null, free: 0, unavailable: 0, devices: [] },
    };
    const part = parts.get(device) ?? 1;
    const reserved = item.ours + item.others;
    const idle = (item.idle ?? null) === null ? null : Math.min(reserved, item.idle! / 24);
    use.capacity += part * item.capacity;
    use.running += part * (reserved - (idle ?? 0));
    use.free += part * item.free;
    use.unavailable += part * (item.unavailable ?? 0);
    if (idle !== null) use.idle = (use.idle ?? 0) + part * idle;
    use.devices.push(`${device}: ${figure(item.free)} free of ${figure(item.capacity)}`);
    found.set(name, use);
  }
  return [...found.values()].sort((one, other) => byNaturalOrder(one.name, other.name));
}

/** By MIG device, the part of a GPU's memory that it is. */
function partsOfGpus(fleet: Fleet): Map<string, number> {
  return new Map(
    (fleet.layouts ?? []).flatMap(({ memory, slices }) =>
      slices.map((slice): [string, number] => [slice.device, slice.memory / memory]),
    ),
  );
}
