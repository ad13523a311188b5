import { useMemo, useState } from "preact/hooks";
import type { OptimizerApi } from "../api/optimizer-api";
import type { FleetScore, ScoreHistory as History } from "../api/wire";
import { Choice } from "../parts/choice";
import { byNaturalOrder } from "../parts/natural-order";
import { Busy, ProblemNotice } from "../parts/notice";
import { Said } from "../parts/said";
import { useLoaded } from "../parts/use-call";
import { Curve } from "../time/curve";
import type { Line } from "../time/curve-lines";
import { shown } from "./score-colour";
import { appNames, appsOf } from "./score-rows";

/** Hours that can be looked at, and their names. */
export const HOURS: Record<number, string> = {
  1: "1 hour",
  6: "6 hours",
  24: "24 hours",
  168: "7 days",
};

interface Props {
  api: OptimizerApi;
  score: FleetScore;
  /** Empty: all clusters. */
  cluster: string;
  /** Missing: one of those that the score knows, to be chosen. */
  app?: string;
}

/** A score over time, on one cluster or over all, where the optimizer knows a Prometheus. */
export function ScoreHistory(props: Props) {
  const [asked, setAsked] = useState(false);
  if (asked) return <Asked {...props} />;
  return (
    <button type="button" onClick={() => setAsked(true)}>
      Over time
    </button>
  );
}

function Asked({ api, score, cluster, app: fixed }: Props) {
  const apps = useMemo(() => appsOf(score).filter(Boolean), [score]);
  const [chosen, setApp] = useState(apps[0] ?? "");
  const app = fixed ?? chosen;
  const [hours, setHours] = useState(24);
  const call = useLoaded(
    () => api.history(score.name, cluster, hours, app),
    [api, score.name, cluster, hours, app],
  );
  return (
    <>
      <div class="controls">
        {fixed === undefined && apps.length > 1 && (
          <Choice label="App" value={app} options={appNames(apps)} onChange={setApp} />
        )}
        <HoursChoice hours={hours} onHours={setHours} />
      </div>
      {call.running && <Busy what="Reading the history" />}
      {call.problem && <ProblemNotice problem={call.problem} />}
      {call.answer && !call.problem && <Warnings said={call.answer.warnings} />}
      {call.answer && !call.problem && <Lines history={call.answer} score={score} app={app} />}
    </>
  );
}

/** What the source of the curves says of them. */
export function Warnings({ said }: { said: string[] }) {
  return said.map((warning) => (
    <p key={warning} class="count">
      About these curves: <Said of={warning} />
    </p>
  ));
}

/** Chooses how far back curves go. */
export function HoursChoice(props: { hours: number; onHours: (hours: number) => void }) {
  return (
    <Choice
      label="Curves of the last"
      value={String(props.hours)}
      options={HOURS}
      onChange={(hours) => props.onHours(Number(hours))}
    />
  );
}

function Lines({ history, score, app }: { history: History; score: FleetScore; app: string }) {
  const lines = useMemo(() => linesOf(history), [history]);
  const where = history.cluster ? `on ${history.cluster}` : "over all clusters";
  const of = app ? ` of ${app}` : "";
  if (lines.length === 0) {
    return (
      <p>
        Prometheus has no values of this score{of} in the last {HOURS[history.hours]}. It has to
        scrape the agents, which publish scores as <code>dynamic_score</code>.
      </p>
    );
  }
  return (
    <>
      <Curve
        label={`${score.display_name || score.name}${of} ${where}`}
        lines={lines}
        say={(value) => `${shown(value)}${score.unit && ` ${score.unit}`}`}
        range={[history.until - history.hours * 3600, history.until]}
      />
      <p class="count">
        {band(history)}
        {history.omitted_series > 0 && ` ${history.omitted_series} more lines are left out.`}
      </p>
    </>
  );
}

function band({ cluster, series }: History): string {
  if (!cluster)
    return "Lines are medians over the clusters, bands go from the 10th to the 90th percentile.";
  const found = series.find((line) => line.low_name);
  return found ? `Bands go from ${found.low_name} to ${found.high_name} of the forecast.` : "";
}

function linesOf({ series }: History): Line[] {
  return series
    .map((line) => ({ ...line, lowName: line.low_name, highName: line.high_name }))
    .sort((one, other) => byNaturalOrder(one.name, other.name));
}
