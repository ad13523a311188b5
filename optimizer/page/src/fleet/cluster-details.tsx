import type { OptimizerApi } from "../api/optimizer-api";
import type { Fleet, FleetScore } from "../api/wire";
import { Ago } from "../parts/ago";
import { Command, commandOf } from "../parts/command";
import { Dialog } from "../parts/dialog";
import { duration } from "../parts/times";
import { CapacityOfCluster } from "./capacity";
import { shown } from "./score-colour";
import { ScoreHistory } from "./score-history";

/** Workloads that can be asked about here. */
const MAX_OTHERS = 50;

interface Props {
  api: OptimizerApi;
  fleet: Fleet;
  name: string;
  onLose: (cluster: string) => void;
  onWhy: (workload: string, cluster: string) => void;
  onClose: () => void;
}

/** One managed cluster: health, what is enforced and runs, and its scores. */
export function ClusterDetails({ api, fleet, name, onLose, onWhy, onClose }: Props) {
  const row = fleet.clusters.findIndex((item) => item.name === name);
  const cluster = fleet.clusters[row];
  if (!cluster) {
    return (
      <Dialog title={name} onClose={onClose}>
        <p>The hub no longer has this cluster.</p>
      </Dialog>
    );
  }
  const here = new Set(cluster.running.map((item) => item.workload));
  const others = fleet.workloads.filter((item) => !here.has(item.name));
  const leftOut = others.length - MAX_OTHERS;
  return (
    <Dialog title={name} onClose={onClose}>
      <dl>
        <dt>Health</dt>
        <dd>{cluster.health}</dd>
        <dt>Placement</dt>
        <dd>
          {cluster.eligible
            ? "OCM may select it."
            : cluster.obstacles.map((item) => `${item.reason}: ${item.message}`).join("; ")}
        </dd>
        <dt>Hardware</dt>
        <dd>
          {Object.entries(cluster.hardware)
            .map(([kind, amount]) => `${amount} ${kind}`)
            .join(", ") || "unknown"}
        </dd>
        <dt>Policies</dt>
        <dd>
          {cluster.enforced
            .map((item) => `${item.policy}: ${item.compliance || "not reported yet"}`)
            .join(", ") || "none enforced"}
        </dd>
      </dl>
      <Command text={commandOf`kubectl describe managedcluster ${name}`} />
      <CapacityOfCluster fleet={fleet} row={row} />
      <h3>Workloads</h3>
      {cluster.running.length === 0 && <p>None is placed here.</p>}
      <ul>
        {cluster.running.map((item) => (
          <li key={item.workload}>
            {item.workload}: {item.state} {item.since && <Ago time={item.since} />} – {item.message}{" "}
            <button type="button" onClick={() => onWhy(item.workload, "")}>
              Why here?
            </button>
          </li>
        ))}
      </ul>
      {others.length > 0 && (
        <details>
          <summary>Why not here?</summary>
          <ul>
            {others.slice(0, MAX_OTHERS).map((item) => (
              <li key={item.name}>
                <button type="button" onClick={() => onWhy(item.name, name)}>
                  {item.name}
                </button>
              </li>
            ))}
          </ul>
          {leftOut > 0 && (
            <p>
              {leftOut} more are left out; <code>dsf why WORKLOAD {name}</code> explains each.
            </p>
          )}
        </details>
      )}
      <h3>Scores</h3>
      {fleet.scores.length === 0 && <p>No scorer has published a score for it.</p>}
      {fleet.scores.map((score) => (
        <ScoreOfCluster key={score.name} api={api} score={score} row={row} cluster={name} />
      ))}
      <button type="button" onClick={() => onLose(name)}>
        What if this cluster is lost?
      </button>
    </Dialog>
  );
}

function ScoreOfCluster(props: {
  api: OptimizerApi;
  score: FleetScore;
  row: number;
  cluster: string;
}) {
  const { api, score, row, cluster } = props;
  const until = score.valid_until[row] ?? null;
  const mean = score.mean[row] ?? null;
  return (
    <details>
      <summary>
        {score.display_name || score.name}: mean {shown(mean)} {score.unit}{" "}
        {mean === null ? "(no entries)" : validity(until, score.expired.includes(row))}
      </summary>
      <table>
        <tbody>
          {score.columns
            .filter((column) => (column.values[row] ?? null) !== null)
            .map((column) => (
              <tr key={`${column.entry};${column.app};${column.device}`}>
                <th scope="row">{column.entry || `${column.app} ${column.device}`}</th>
                <td class="value">{shown(column.values[row] ?? null)}</td>
              </tr>
            ))}
        </tbody>
      </table>
      <ScoreHistory api={api} score={score} cluster={cluster} />
    </details>
  );
}

function validity(until: number | null, expired: boolean): string {
  if (expired) return "– expired: placement does not use it";
  if (until === null) return "";
  return `– valid for ${duration(until - Date.now() / 1000)}`;
}
