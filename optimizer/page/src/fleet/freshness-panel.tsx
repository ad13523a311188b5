import { useMemo } from "preact/hooks";
import type { Fleet } from "../api/wire";
import { Link } from "../parts/link";
import { Panel } from "../parts/panel";
import { counted } from "../parts/sentences";
import { Key, StackedBar } from "../parts/stacked-bar";
import { ageTold, freshness, type Late, lateTold } from "./freshness";

/** How old scores are, and which are late where. */
export function FreshnessPanel({ fleet }: { fleet: Fleet }) {
  const { parts, late, oldest, ahead } = useMemo(() => freshness(fleet), [fleet]);
  const whole = parts.reduce((sum, { amount }) => sum + amount, 0);
  const percent = (amount: number) => {
    const share = (100 * amount) / whole;
    return share > 0 && share < 1 ? "<1 %" : `${Math.round(share)} %`;
  };
  const told = parts.map(({ name, tone, amount }) => ({ name, tone, said: percent(amount) }));
  return (
    <Panel title="How fresh are scores?" class="fresh">
      {whole === 0 && <p class="lead">No scores yet.</p>}
      {whole > 0 && (
        <StackedBar
          parts={parts}
          said={told.map((item) => `${item.said} ${item.name}`).join(", ")}
        />
      )}
      <Key parts={told} />
      <LateScores late={late} />
      {oldest && late.length === 0 && (
        <p class="clip" title={`${oldest.score} of ${oldest.cluster}`}>
          None is late. Oldest: {oldest.score} of {oldest.cluster}, {ageTold(oldest)}
        </p>
      )}
      {ahead > 0 && (
        <p class="bad">{counted(ahead, "score")} written in the future: a clock is wrong.</p>
      )}
    </Panel>
  );
}

/** Lines of scores that are late. */
const LINES = 2;

/** Which scores are late on which clusters, the worst first; nothing where none is. */
export function LateScores({ late }: { late: Late[] }) {
  if (late.length === 0) return null;
  return (
    <ul class="late">
      {late.slice(0, LINES).map((item) => {
        const [first = ""] = item.clusters;
        const where = item.clusters.length > 1 ? counted(item.clusters.length, "cluster") : first;
        return (
          <li key={item.scores.join()} title={`${where}: ${lateTold(item)}`}>
            Late: <Link to={{ view: "scores", score: item.score, column: "age" }}>{where}</Link>,{" "}
            {lateTold(item)}
          </li>
        );
      })}
      {late.length > LINES && <li>{late.length - LINES} more</li>}
    </ul>
  );
}
