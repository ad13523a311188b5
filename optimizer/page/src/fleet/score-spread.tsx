import { useMemo } from "preact/hooks";
import type { FleetScore, ScoreColumn } from "../api/wire";
import { figure } from "../parts/sentences";
import { spreadOf } from "./score-rows";

/** How values are spread over the fleet, from the least of the score to its greatest. */
export function SpreadBars({
  score,
  values,
}: {
  score: FleetScore;
  values: ScoreColumn["values"];
}) {
  const spread = useMemo(() => spreadOf(score, values), [score, values]);
  if (!spread) return null;
  const { least, median, greatest, bars } = spread;
  const highest = Math.max(...bars);
  const said = `from ${figure(least)} to ${figure(greatest)}, median ${figure(median)}`;
  return (
    <>
      <span class="spread" role="img" aria-label={said} title={said}>
        {bars.map((count, at) => (
          <span key={at} style={{ height: `${count && 12 + (88 * count) / highest}%` }} />
        ))}
      </span>
      <small>
        {figure(least)} – {figure(greatest)}
      </small>
    </>
  );
}
