import { byNaturalOrder } from "../parts/natural-order";
import { counted } from "../parts/sentences";
import type { DrawnGroup } from "./drawing-layout";
import type { ChosenScore, DrawnCluster } from "./drawn-fleet";
import { STATE_NAMES } from "./drawing-colours";
import { type GpuUse, modelsTold, useTold } from "./gpu-use";
import { bestFirst } from "./score-colour";

/** What clusters can be sorted by. */
export const SORTS = { name: "name", score: "score, best first", use: "use, fullest first" };
export type Sort = keyof typeof SORTS;

const LABEL = "label:";

/** What clusters can be grouped by: texts by key. The keys of labels follow those that all fleets have. */
export function groupings(clusters: DrawnCluster[]): Record<string, string> {
  const always = { "": "nothing", model: "GPU model", policy: "policy", state: "state" };
  return { ...always, ...labelGroupings(clusters) };
}

/** The labels that clusters can be grouped by: texts by key. */
export function labelGroupings(clusters: Pick<DrawnCluster, "labels">[]): Record<string, string> {
  const labels = [...new Set(clusters.flatMap((cluster) => Object.keys(cluster.labels)))];
  return Object.fromEntries(labels.sort(byNaturalOrder).map((label) => [LABEL + label, label]));
}

/** The key of what an address groups by: a label may be named alone. Empty: the fleet does not have it. */
export function groupingOf(options: Record<string, string>, name: string): string {
  return [name, LABEL + name].find((key) => Object.hasOwn(options, key)) ?? "";
}

/** Clusters in groups; both are in natural order, or the clusters as they are sorted. `uses`: by group. */
export function grouped(
  clusters: DrawnCluster[],
  by: string,
  sort: Sort,
  chosen: ChosenScore | null,
  uses: GpuUse[] | null,
): DrawnGroup[] {
  const sorted = [...clusters].sort(comparison(sort, chosen));
  if (!by) return [{ title: "", told: "", clusters: sorted }];
  const groups = new Map<string, DrawnCluster[]>();
  for (const cluster of sorted) {
    const title = titleOf(cluster, by);
    const group = groups.get(title);
    if (group) group.push(cluster);
    else groups.set(title, [cluster]);
  }
  const known = new Map(uses?.map((item) => [item.name, item]));
  const told = (title: string, members: DrawnCluster[]) => {
    const use = known.get(title);
    if (!use) return { told: useOf(members) };
    const models = by === "model" || use.models.size < 2 ? "" : modelsTold(use);
    const summed = members.filter((cluster) => cluster.inventoried).length;
    const of = summed < members.length ? `${summed} of ` : "";
    return { told: `${of}${counted(members.length, "cluster")}: ${useTold(use)}`, models };
  };
  return [...groups]
    .sort(([one], [other]) => byNaturalOrder(one, other))
    .map(([title, members]) => ({ title, ...told(title, members), clusters: members }));
}

/** `12 clusters, 96 GPUs, 61% of 480 slices in use`. */
export function useOf(clusters: DrawnCluster[]): string {
  const sum = (of: (cluster: DrawnCluster) => number) =>
    clusters.reduce((total, cluster) => total + of(cluster), 0);
  const slices = sum((cluster) => cluster.slices);
  const gpus = sum((cluster) => cluster.gpus.length + cluster.omitted);
  const used = sum((cluster) => cluster.used);
  const parts = [counted(clusters.length, "cluster"), counted(gpus, "GPU")];
  if (slices) parts.push(`${Math.round((100 * used) / slices)}% of ${slices} slices in use`);
  return parts.join(", ");
}

/** The group of a cluster. `by`: a key of `groupings` that is not empty. */
export function titleOf(cluster: DrawnCluster, by: string): string {
  const several = (names: string[], none: string) => [...new Set(names)].join(", ") || none;
  if (by === "model") {
    const models = cluster.gpus.map((gpu) => gpu.model || "unknown model");
    return several(models.sort(byNaturalOrder), "no GPU is known");
  }
  if (by === "policy") return several(cluster.policies, "no policy");
  if (by === "state") return STATE_NAMES[cluster.state];
  return labelOf(cluster.labels, by);
}

/** The group of a cluster by a label. `by`: a key of `groupings` that is of a label. */
export function labelOf(labels: Record<string, string>, by: string): string {
  const label = by.slice(LABEL.length);
  return labels[label] || `without ${label}`;
}

function comparison(sort: Sort, chosen: ChosenScore | null) {
  const share = (one: DrawnCluster) => (one.slices ? one.used / one.slices : -1);
  return (one: DrawnCluster, other: DrawnCluster): number => {
    const names = byNaturalOrder(one.name, other.name);
    if (sort === "use") return share(other) - share(one) || names;
    if (sort === "name" || !chosen) return names;
    return bestFirst(chosen.score, one.score, other.score) || names;
  };
}
