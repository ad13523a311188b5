import type { OptimizerApi, ScoreHistory as History } from "../api/optimizer-api";
import { Busy, ProblemNotice } from "../parts/notice";
import { useCall } from "../parts/use-call";
import { shown } from "./score-colour";

/** Size of the picture in its own units; the style sheet scales it. */
const WIDTH = 600;
const HEIGHT = 120;

/** Hours that the picture covers. */
const HOURS = 24;

/** A score of a cluster over the last day, where the optimizer knows a Prometheus. */
export function ScoreHistory(props: { api: OptimizerApi; score: string; cluster: string }) {
  const [call, start] = useCall<History>();
  const load = () => start(() => props.api.history(props.score, props.cluster, HOURS));
  if (call.running) return <Busy what="Reading the history" />;
  if (call.problem) return <ProblemNotice problem={call.problem} />;
  if (call.answer) return <Lines history={call.answer} score={props.score} />;
  return (
    <button type="button" onClick={load}>
      Last {HOURS} hours
    </button>
  );
}

function Lines({ history, score }: { history: History; score: string }) {
  const points = history.series.flatMap((line) => line.points);
  const values = points.map(([, value]) => value).filter((value) => value !== null);
  if (values.length === 0) return <p>Prometheus has no values of this score yet.</p>;
  const times = points.map(([time]) => time);
  const [from, to] = [Math.min(...times), Math.max(...times)];
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const x = (time: number) => ((time - from) / (to - from || 1)) * WIDTH;
  const y = (value: number) => HEIGHT - 4 - ((value - low) / (high - low || 1)) * (HEIGHT - 8);
  return (
    <figure>
      <svg
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        role="img"
        aria-label={`${score}: between ${shown(low)} and ${shown(high)} in ${HOURS} hours`}
      >
        {history.series.map((line) => (
          <path key={line.name} d={pathOf(line.points, x, y)}>
            <title>{line.name}</title>
          </path>
        ))}
      </svg>
      <figcaption>
        {shown(low)} to {shown(high)}
      </figcaption>
    </figure>
  );
}

/** The path of a line; it is broken where there is no value. */
function pathOf(
  points: [number, number | null][],
  x: (time: number) => number,
  y: (value: number) => number,
): string {
  let pen = "M";
  const parts: string[] = [];
  for (const [time, value] of points) {
    if (value === null) {
      pen = "M";
      continue;
    }
    parts.push(`${pen}${x(time).toFixed(1)} ${y(value).toFixed(1)}`);
    pen = "L";
  }
  return parts.join("");
}
