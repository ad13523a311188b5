import type { Finding } from "../api/wire";
import { counted } from "../parts/sentences";

/** What has one cause. */
export interface Cause {
  /** Of the cause itself. It tells it from others, also in the address. */
  reason: string;
  severity: NonNullable<Finding["severity"]>;
  /** The findings of the cause itself, and those that follow from it. */
  own: Finding[];
  others: Finding[];
  /** When the first of the cause itself began; null: the hub does not say. */
  oldest: string | null;
}

const WORST_FIRST = ["error", "warning", "info"];

/**
 * What is wrong by its cause: the worst first, then what most objects have. Findings come the worst first, too,
 * then in the order of the way from scorer to workload: of those with one reason, the first has the cause.
 */
export function causesOf(findings: Finding[]): Cause[] {
  // What follows from another cause leads nothing: its own findings may stand with that one.
  const reasons = new Set(findings.flatMap(({ cause, reason }) => (cause ? [] : reason)));
  const found = new Map<string, Finding[]>();
  for (const item of findings) {
    const reason = item.cause && reasons.has(item.cause) ? item.cause : item.reason;
    found.set(reason, [...(found.get(reason) ?? []), item]);
  }
  const rank = ({ severity }: Cause) => WORST_FIRST.indexOf(severity);
  return [...found]
    .map(([reason, items]) => causeOf(reason, items))
    .sort((one, other) => rank(one) - rank(other) || sizeOf(other) - sizeOf(one));
}

function causeOf(reason: string, found: Finding[]): Cause {
  const first = found.find((item) => item.reason === reason)!;
  const isOwn = (item: Finding) => item.reason === reason && item.stage === first.stage;
  const own = found.filter(isOwn);
  const began = own.flatMap(({ since }) => (since ? Date.parse(since) : []));
  return {
    ...{ reason, severity: found[0]!.severity ?? "error", own },
    others: found.filter((item) => !isOwn(item)),
    oldest: began.length ? new Date(Math.min(...began)).toISOString() : null,
  };
}

function sizeOf({ own, others }: Cause): number {
  return Math.max(...[...own, ...others].map(({ count = 1 }) => count));
}

/** How many objects findings are about: `1 cluster, 6 workloads`. */
export function objectsOf(findings: Finding[]): string {
  const counts = new Map<string, number>();
  for (const { stage, count = 1 } of findings) counts.set(stage, (counts.get(stage) ?? 0) + count);
  return [...counts].map(([stage, count]) => counted(count, stage)).join(", ");
}
