import { useMemo } from "preact/hooks";
import type { OptimizerApi } from "../api/optimizer-api";
import type { Fleet, FleetScore, Scorer, ScorerHistories } from "../api/wire";
import { freshness } from "../fleet/freshness";
import { shown } from "../fleet/score-colour";
import { HoursChoice, ScoreHistory, Warnings } from "../fleet/score-history";
import { meaningOf } from "../fleet/score-meaning";
import { spreadOf } from "../fleet/score-rows";
import { SpreadBars } from "../fleet/score-spread";
import { Choice } from "../parts/choice";
import { Busy, ProblemNotice } from "../parts/notice";
import { Said } from "../parts/said";
import { figure, listed, sentence } from "../parts/sentences";
import { StackedBar } from "../parts/stacked-bar";
import { Table } from "../parts/table";
import { duration } from "../parts/times";
import { useAddress } from "../parts/use-address";
import { useLoaded } from "../parts/use-call";
import { Sparkline } from "../time/curve";
import { latest } from "../time/curve-lines";
import { MEASURES, ORDERS, panelsOf, type Measure, type Panel, WORST_FIRST } from "./scorer-panels";
import "./scorers.css";

/** Milliseconds after which curves are read again: each reads every score of the fleet. */
const REFRESH = 300_000;

/** Scorers side by side: how each does, over time where a Prometheus is configured. */
export function Scorers({ api, fleet }: { api: OptimizerApi; fleet: Fleet }) {
  const [hours, setHours] = useAddress("hours", "24");
  const [order, setOrder] = useAddress("order", WORST_FIRST);
  const turn = Math.floor(Date.now() / REFRESH);
  const call = useLoaded(() => api.scorers(Number(hours)), [api, hours, turn]);
  const panels = panelsOf(fleet.scorers, call.answer?.scorers, order);
  if (fleet.scorers.length === 0) {
    return (
      <p class="notice">
        There is no DynamicScorer, or you may not list them. The tutorial “quickstart” registers the
        first one.
      </p>
    );
  }
  return (
    <section aria-label="Scorers">
      <div class="controls">
        <Choice label="Order" value={order} options={ORDERS} onChange={setOrder} />
        <HoursChoice hours={Number(hours)} onHours={(chosen) => setHours(String(chosen))} />
        {call.answer && <p class="legend">{LEGEND}</p>}
      </div>
      {call.running && !call.answer && <Busy what="Reading how the scorers did" />}
      {call.problem && <ProblemNotice problem={call.problem} />}
      {call.answer?.missing.map((why) => (
        <p key={why} class="notice">
          Some curves are missing. <Said of={why} />
        </p>
      ))}
      {call.answer && <Warnings said={call.answer.warnings} />}
      <div class="scorers">
        {panels.map((panel) => (
          <ScorerPanel
            key={`${panel.scorer.namespace}/${panel.scorer.name}`}
            api={api}
            fleet={fleet}
            panel={panel}
            range={call.answer ?? undefined}
          />
        ))}
      </div>
    </section>
  );
}

const LEGEND =
  "Now: median and spread over the clusters. Score: the same over time, band from the 10th to the 90th percentile. Age: of the last good" +
  " round, where it is longest ago. Failed: rounds of all clusters. Latency: 90% of the calls. Skill: how much smaller the error of" +
  " forecasts is than that of the last value.";

interface PanelProps {
  api: OptimizerApi;
  fleet: Fleet;
  panel: Panel;
  range: ScorerHistories | undefined;
}

function ScorerPanel({ api, fleet, panel: { scorer, history }, range }: PanelProps) {
  const counts = scorer.clusters;
  const seen = MEASURES.filter(
    ({ lines }) => history && latest(lines(history)[0]?.points) !== null,
  );
  const unseen = MEASURES.filter((one) => !seen.includes(one)).map(({ name }) =>
    name.toLowerCase(),
  );
  const score = fleet.scores.find((item) => item.name === scorer.score);
  return (
    <article class="card">
      <h2>
        {scorer.display_name || scorer.name}{" "}
        <span class={scorer.working ? "good" : "bad"}>
          {scorer.working ? "works" : scorer.reason}
        </span>
      </h2>
      <p>{meaningOf(scorer, scorer.scale)}</p>
      <p>
        {scorer.health},{" "}
        {counts.desired
          ? `scores on ${counts.scoring ?? 0} of ${counts.desired} clusters`
          : "scores on no cluster"}
        {scorer.interval_seconds ? `, every ${duration(scorer.interval_seconds)}.` : "."}
      </p>
      {!scorer.working && scorer.failing.length === 0 && (
        <p>
          <Said of={scorer.message} />
        </p>
      )}
      {scorer.remedy && (
        <p>
          Next: <Said of={scorer.remedy} />
        </p>
      )}
      {range && !history && (
        <p>Prometheus has nothing of this scorer: it has to scrape the agents.</p>
      )}
      <dl class="measures">
        {score && <Now fleet={fleet} score={score} />}
        {range &&
          history &&
          seen.map((measure) => (
            <MeasureCurve key={measure.name} measure={measure} history={history} range={range} />
          ))}
      </dl>
      {range && history && unseen.length > 0 && (
        <p class="count">No values of {unseen.join(", ")}.</p>
      )}
      {history && history.failing.length > 0 && (
        <Table
          caption="Most failed rounds"
          heads={["Cluster", "Rounds"]}
          rows={history.failing.map(({ cluster, rounds }) => ({
            key: cluster,
            cells: [cluster || "not labelled", figure(Math.round(rounds))],
          }))}
        />
      )}
      {[...failuresOf(scorer)].map(([reason, failing]) => (
        <details key={reason} class="failing">
          <summary>
            <span class="bad">{reason}</span> on{" "}
            {listed(
              failing.map(({ cluster }) => cluster),
              3,
            )}
          </summary>
          <ul>
            {failing.map(({ cluster, message }) => (
              <li key={cluster}>
                {cluster}: {sentence(message)}
              </li>
            ))}
          </ul>
        </details>
      ))}
      {history && score && <ScoreHistory api={api} score={score} cluster="" />}
    </article>
  );
}

/** How the score of a scorer is spread over the clusters now, and how old it is. */
function Now({ fleet, score }: { fleet: Fleet; score: FleetScore }) {
  const { parts, oldest } = useMemo(() => freshness({ ...fleet, scores: [score] }), [fleet, score]);
  const median = spreadOf(score, score.mean)?.median ?? null;
  const said = parts.map(({ name, amount }) => `${amount} ${name}`).join(", ");
  return (
    <>
      <div>
        <dt>Now</dt>
        <dd class="value">{shown(median)}</dd>
        <dd>
          <SpreadBars score={score} values={score.mean} />
        </dd>
      </div>
      <div>
        <dt>Age now</dt>
        <dd class="value">{oldest ? duration(oldest.age!) : "none"}</dd>
        <dd class="clip" title={oldest?.cluster}>
          <StackedBar parts={parts} said={said} />
          <small>{oldest && `oldest: ${oldest.cluster}`}</small>
        </dd>
      </div>
    </>
  );
}

/** Clusters on which a scorer fails, by reason. */
function failuresOf({ failing }: Scorer): Map<string, Scorer["failing"]> {
  const reasons = [...new Set(failing.map(({ reason }) => reason))];
  return new Map(reasons.map((one) => [one, failing.filter(({ reason }) => reason === one)]));
}

function MeasureCurve(props: {
  measure: Measure;
  history: NonNullable<Panel["history"]>;
  range: ScorerHistories;
}) {
  const { measure, history, range } = props;
  const lines = useMemo(() => measure.lines(history), [measure, history]);
  const last = latest(lines[0]?.points);
  return (
    <div>
      <dt>{measure.name}</dt>
      <dd class="value">{last === null ? "none" : measure.say(last)}</dd>
      <dd>
        <Sparkline
          label={measure.name}
          lines={lines}
          say={measure.say}
          range={[range.until - range.hours * 3600, range.until]}
        />
      </dd>
    </div>
  );
}
