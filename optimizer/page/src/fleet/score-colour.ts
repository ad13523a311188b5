import { figure } from "../parts/sentences";
import type { FleetScore } from "../api/wire";

/** Compares two values of a score: the better one comes first, and a missing one last. */
export function bestFirst(
  { direction }: FleetScore,
  one: number | null,
  other: number | null,
): number {
  if (one === null || other === null) return Number(one === null) - Number(other === null);
  return direction === "LowerIsBetter" ? one - other : other - one;
}

/** How good a value is within its score: 0 is the worst of the fleet, 1 the best. */
export function goodness(value: number, score: FleetScore): number {
  const low = score.minimum ?? value;
  const high = score.maximum ?? value;
  if (high === low) return 0.5;
  const share = (value - low) / (high - low);
  return score.direction === "LowerIsBetter" ? 1 - share : share;
}

/** Background of a cell. The strongest tint keeps the text's contrast above 4.5 in both schemes. */
export function tint(value: number | null, score: FleetScore): string | undefined {
  if (value === null) return undefined;
  const percent = Math.round(goodness(value, score) * 45);
  return `color-mix(in srgb, var(--good) ${percent}%, var(--surface))`;
}

/** A score as people read it. */
export function shown(value: number | null): string {
  return value === null ? "–" : figure(value);
}
