import { type Colouring, type Fill, FREE, OTHERS, STATE_NAMES, STATES } from "./drawing-colours";
import type { Detail } from "./drawing-layout";
import type { ChosenScore, DrawnCluster } from "./drawn-fleet";
import { shown } from "./score-colour";

/** Workloads that are listed by name. */
const MAX_NAMED = 12;

/** What the colours of the drawn fleet mean. */
export function Legend(props: {
  detail: Detail;
  colour: Colouring;
  chosen: ChosenScore | null;
  fills: Map<string, Fill>;
  clusters: DrawnCluster[];
}) {
  const { detail, colour, chosen, fills, clusters } = props;
  if (colour === "score") {
    return (
      <>
        {chosen ? <Scale {...chosen} /> : <p class="legend">No scores yet.</p>}
        <ul class="key">
          <ShapeMeanings {...{ detail, clusters }} />
        </ul>
      </>
    );
  }
  if (colour === "state") {
    return (
      <ul class="legend key">
        {statesOf(clusters).map((state) => (
          <FillMeaning key={state} fill={STATES[state]} text={STATE_NAMES[state]} />
        ))}
        <FillMeaning fill={FREE} text="free" />
        <ShapeMeanings {...{ detail, clusters: [] }} />
      </ul>
    );
  }
  if (detail === "cell") {
    return (
      <>
        <Ramp what="slices in use" from="0%" to="100%" />
        <ul class="legend key">
          <LostMeaning clusters={clusters} text="on a lost cluster" />
        </ul>
      </>
    );
  }
  const listed = fills.size <= MAX_NAMED ? [...fills] : [];
  return (
    <ul class="legend key">
      {listed.map(([name, fill]) => (
        <FillMeaning key={name} fill={fill} text={name} />
      ))}
      {!listed.length && fills.size > 0 && (
        <li>{fills.size} workloads by colour and hatching: point at one for its name</li>
      )}
      <FillMeaning fill={OTHERS} text="Pods of others" />
      <FillMeaning fill={FREE} text="free" />
      <LostMeaning clusters={clusters} />
      <FillMeaning fill={GAP} text="memory in no slice" />
      {detail === "labels" && <li>small squares: compute slices</li>}
      <ShapeMeanings {...{ detail, clusters }} />
    </ul>
  );
}

function statesOf(clusters: DrawnCluster[]): DrawnCluster["state"][] {
  const there = new Set(clusters.map((cluster) => cluster.state));
  return (Object.keys(STATES) as DrawnCluster["state"][]).filter((one) => there.has(one));
}

/** What tiles, their frames, and the squares beside names mean, where those are drawn. */
export function ShapeMeanings(props: { detail: Detail; clusters: DrawnCluster[]; frame?: string }) {
  const { detail, clusters, frame = "changed just now" } = props;
  const named = detail === "names" || detail === "labels";
  const marked = statesOf(named ? clusters : []).filter((state) => state !== "eligible");
  return (
    <>
      {detail !== "cell" && <li>tile: cluster, bar: GPU, box: slice</li>}
      <li>
        <span class="swatch framed" />
        {frame}
      </li>
      {marked.map((state) => (
        <FillMeaning
          key={state}
          fill={STATES[state]}
          text={`beside a name: ${STATE_NAMES[state]}`}
        />
      ))}
    </>
  );
}

const GAP: Fill = { colour: "--gap", pattern: "none" };

/** What a share of the scale means, from its faintest to its strongest colour. */
function Ramp(props: { what: string; from: string; to: string; more?: string }) {
  return (
    <p class="legend">
      {props.what}: {props.from} <span class="ramp" /> {props.to}
      {props.more}
    </p>
  );
}

/** What the fill of unused slices means where a cluster is lost; nothing where none is. */
export function LostMeaning(props: { clusters: DrawnCluster[]; text?: string }) {
  if (props.clusters.every(({ state }) => state !== "lost")) return null;
  return <FillMeaning fill={STATES.lost} text={props.text ?? "free, on a lost cluster"} />;
}

/** A line of a legend. */
export function FillMeaning({ fill, text }: { fill: Fill; text: string }) {
  const background = fill.colour === null ? undefined : `var(${fill.colour})`;
  return (
    <li>
      <span class={`swatch ${fill.pattern}`} style={{ backgroundColor: background }} />
      {text}
    </li>
  );
}

function Scale({ score, app }: ChosenScore) {
  const { minimum, maximum, unit, direction } = score;
  const what = [score.display_name || score.name, app && `of ${app}`].filter(Boolean).join(" ");
  if (minimum === null || maximum === null) return <p class="legend">{what} has no values yet.</p>;
  const lower = direction === "LowerIsBetter";
  const [worst, best] = lower ? [maximum, minimum] : [minimum, maximum];
  const more = " · dot: in use · hatched: no score";
  if (worst === best) {
    return (
      <p class="legend">
        {what}: {shown(best)} {unit} everywhere{more}
      </p>
    );
  }
  const to = `${shown(best)} ${unit} (best)`;
  return <Ramp what={what} from={`${shown(worst)} (worst)`} to={to} more={more} />;
}
