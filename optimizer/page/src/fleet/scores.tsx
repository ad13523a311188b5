import { useMemo } from "preact/hooks";
import type { OptimizerApi } from "../api/optimizer-api";
import type { Fleet } from "../api/wire";
import { Choice, Search } from "../parts/choice";
import { go, useAddress } from "../parts/use-address";
import type { FleetChanges } from "./fleet-changes";
import { freshness } from "./freshness";
import { LateScores } from "./freshness-panel";
import { enforces, ScoreGrid } from "./score-grid";
import { ScoreHistory } from "./score-history";
import { meaningOf } from "./score-meaning";
import { appNames, appsOf, chosenScore, columnsOf, MAX_COLUMNS } from "./score-rows";
import { rowsOf, scoreNames, titleOf } from "./score-rows";

interface Props {
  api: OptimizerApi;
  fleet: Fleet;
  changes: FleetChanges;
  onOpen: (name: string) => void;
}

/** Managed clusters by how good they are for one app, the best first. */
export function Scores({ api, fleet, changes, onOpen }: Props) {
  const [wanted] = useAddress("score");
  const [wantedApp] = useAddress("app");
  const [filter, setFilter] = useAddress("find");
  const [sortedBy, setSort] = useAddress("column", "best");
  const score = chosenScore(fleet, wanted);
  const apps = useMemo(() => appsOf(score), [score]);
  const app = apps.includes(wantedApp) ? wantedApp : (apps[0] ?? "");
  const all = useMemo(() => columnsOf(score, app), [score, app]);
  const columns = all.slice(0, MAX_COLUMNS);
  const sort = ["name", "age", ...columns.map(titleOf)].includes(sortedBy) ? sortedBy : "best";
  const order = useMemo(
    () => rowsOf(fleet, score, columns, { filter, sort }),
    [fleet, score, app, filter, sort],
  );
  const scorer = fleet.scorers.find(({ name }) => name === score?.scorer);
  const late = useMemo(() => freshness(fleet).late, [fleet]);
  const omitted = all.length - columns.length + (score?.omitted_columns ?? 0);
  return (
    <section aria-label="Scores">
      <div class="controls">
        <Choice
          label="Score"
          value={score?.name ?? ""}
          options={scoreNames(fleet)}
          onChange={(name) => go({ score: name, column: "" })}
        />
        <Choice
          label="App"
          value={app}
          options={appNames(apps)}
          onChange={(name) => go({ app: name, column: "" })}
        />
        <Search
          label="Find"
          placeholder="cluster, policy, workload"
          value={filter}
          onChange={setFilter}
        />
        <p class="legend">
          {score
            ? `${meaningOf(score, scorer?.scale)} The better, the stronger the colour.`
            : "No scores yet."}
        </p>
      </div>
      <LateScores late={late} />
      <ScoreGrid
        fleet={fleet}
        score={score}
        app={app}
        order={order}
        columns={columns}
        sort={sort}
        changes={changes}
        onSort={setSort}
        onOpen={onOpen}
      />
      <p class="count" role="status">
        {order.length} of {fleet.clusters.length} clusters
        {omitted > 0 && `; ${omitted} columns left out`}
        {!enforces(fleet) && "; no plan enforces a policy, so GPUs stay divided as they are"}
      </p>
      {score && <ScoreHistory key={score.name} api={api} score={score} cluster="" app={app} />}
    </section>
  );
}
