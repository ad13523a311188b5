import type { Scorer, ScorerHistory } from "../api/wire";
import { byNaturalOrder } from "../parts/natural-order";
import { figure } from "../parts/sentences";
import { age, latest, type Line } from "../time/curve-lines";

/** A scorer, and its curves where Prometheus has some. */
export interface Panel {
  scorer: Scorer;
  history: ScorerHistory | undefined;
}

/** A curve of each panel. */
export interface Measure {
  name: string;
  lines: (history: ScorerHistory) => Line[];
  say: (value: number) => string;
}

const percent = (value: number) => `${Math.round(value * 100)}%`;

const line = (points: Line["points"], name = ""): Line => ({ name, points });

export const MEASURES: Measure[] = [
  {
    name: "Score",
    lines: ({ median, low, high }) => [
      { ...line(median, "median"), low, high, lowName: "p10", highName: "p90" },
    ],
    say: figure,
  },
  { name: "Age", lines: (history) => [line(history.age)], say: age },
  { name: "Failed", lines: (history) => [line(history.failed)], say: percent },
  {
    name: "Latency",
    lines: (history) => [line(history.latency)],
    say: (value) => (value < 1 ? `${Math.round(value * 1000)} ms` : `${figure(value)} s`),
  },
  { name: "Skill", lines: (history) => [line(history.skill)], say: percent },
];

export const WORST_FIRST = "worst first";

/** A number by which panels are sorted, the highest first; null: not known, so last. */
const KEYS: Record<string, (panel: Panel) => number | null> = {
  [WORST_FIRST]: ({ scorer, history }) =>
    (scorer.working ? 0 : 1e6) +
    (without(scorer) + (latest(history?.failed) ?? 0)) * 1e3 +
    (latest(history?.age) ?? 0) / (scorer.interval_seconds || 60),
  name: () => 0,
  age: ({ history }) => latest(history?.age),
  failed: ({ history }) => latest(history?.failed),
  latency: ({ history }) => latest(history?.latency),
  "least skill": ({ history }) => {
    const skill = latest(history?.skill);
    return skill === null ? null : -skill;
  },
};

/** The share of the clusters that a scorer is meant for and has no scores of. */
function without({ clusters: { desired, scoring } }: Scorer): number {
  return desired ? 1 - (scoring ?? 0) / desired : 0;
}

/** What panels can be sorted by: texts by value. */
export const ORDERS = Object.fromEntries(Object.keys(KEYS).map((name) => [name, name]));

/** Scorers with their curves in an order of ORDERS; equal ones by name. */
export function panelsOf(
  scorers: Scorer[],
  histories: ScorerHistory[] | undefined,
  order: string,
): Panel[] {
  const known = new Map(histories?.map((history) => [history.score, history]));
  const key = KEYS[order] ?? KEYS[WORST_FIRST]!;
  const rank = (panel: Panel) => key(panel) ?? -Infinity;
  return scorers
    .map((scorer) => ({ scorer, history: known.get(scorer.score) }))
    .sort((one, other) => {
      const [first, second] = [rank(one), rank(other)];
      if (first !== second) return second > first ? 1 : -1;
      return byNaturalOrder(one.scorer.name, other.scorer.name);
    });
}
