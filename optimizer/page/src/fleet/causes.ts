import type { Finding } from "../api/wire";

/** Findings with the same reason. */
export interface Cause {
  /** Tells it from others, also in the address. */
  key: string;
  reason: string;
  stage: Finding["stage"];
  severity: NonNullable<Finding["severity"]>;
  /** Objects that have it. */
  count: number;
  /** When the first of them began; null: the hub does not say. */
  oldest: string | null;
  findings: Finding[];
}

const WORST_FIRST = ["error", "warning", "info"];

/** What is wrong by its reason: the worst first, then what most objects have. */
export function causesOf(findings: Finding[]): Cause[] {
  const found = new Map<string, Cause>();
  for (const item of findings) {
    const { reason, stage, severity = "error", count = 1, since = null } = item;
    const key = [severity, stage, reason].join(" ");
    const known = found.get(key) ?? {
      ...{ key, reason, stage, severity, count: 0, oldest: null, findings: [] },
    };
    known.count += count;
    known.findings.push(item);
    if (since && (!known.oldest || Date.parse(since) < Date.parse(known.oldest))) {
      known.oldest = since;
    }
    found.set(key, known);
  }
  const rank = (cause: Cause) => WORST_FIRST.indexOf(cause.severity);
  return [...found.values()].sort(
    (one, other) => rank(one) - rank(other) || other.count - one.count,
  );
}
