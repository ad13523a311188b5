import type { Scorer } from "../api/wire";
import { figure, sentence } from "../parts/sentences";

type Stated = Pick<Scorer, "description" | "unit" | "direction">;

/** What a score tells: what it measures, which values are better, and what 0 and 100 stand for. */
export function meaningOf(
  { description, unit, direction }: Stated,
  scale: Scorer["scale"],
): string {
  const better = direction === "LowerIsBetter" ? "Lower is better" : "Higher is better";
  const measured = (value: number) => `${figure(value)} ${scale?.unit}`.trim();
  const ends =
    scale && `: 100 stands for ${measured(scale.hundred)}, 0 for ${measured(scale.zero)}`;
  return `${sentence(description)} ${better}${ends ?? (unit && `, in ${unit}`)}.`.trim();
}
