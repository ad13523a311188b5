import type { Finding, Fleet, Scorer } from "../api/wire";
import { sentence } from "../parts/sentences";
import { Table } from "../parts/table";
import { ago } from "../parts/times";

/** What is wrong in the fleet, with the next step of each. */
export function Findings({ findings, omitted }: { findings: Finding[]; omitted: number }) {
  if (findings.length === 0) return <p class="notice good">Nothing is wrong.</p>;
  return (
    <section aria-label="Findings">
      <h2>What is wrong, and what to do</h2>
      <ul class="findings">
        {findings.map((item, position) => (
          <li key={`${position} ${item.name}`}>
            <strong>
              {item.stage} {item.name}: {item.reason}
            </strong>
            <p>
              {sentence(item.message)}
              {item.since && ` It began ${ago(item.since)}.`}
            </p>
            <p>Next: {sentence(item.next)}</p>
          </li>
        ))}
      </ul>
      {omitted > 0 && <p>{omitted} more are left out.</p>}
    </section>
  );
}

/** Scorers, and where each fails. */
export function Scorers({ fleet }: { fleet: Fleet }) {
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
      {fleet.scorers.map((item) => (
        <ScorerCard key={item.name} scorer={item} />
      ))}
    </section>
  );
}

function ScorerCard({ scorer }: { scorer: Scorer }) {
  const counts = scorer.clusters;
  return (
    <article class="card">
      <h2>
        {scorer.display_name || scorer.name}{" "}
        <span class={scorer.working ? "good" : "bad"}>
          {scorer.working ? "works" : scorer.reason}
        </span>
      </h2>
      <p>
        {sentence(scorer.description)} {scorer.health},{" "}
        {counts.desired
          ? `scores on ${counts.scoring ?? 0} of ${counts.desired} clusters.`
          : "scores on no cluster."}
      </p>
      {!scorer.working && <p>{sentence(scorer.message)}</p>}
      {scorer.remedy && <p>Next: {sentence(scorer.remedy)}</p>}
      {scorer.failing.length > 0 && (
        <Table
          caption="Failing clusters"
          heads={["Cluster", "Reason", "Message"]}
          rows={scorer.failing.map(({ cluster, reason, message }) => ({
            key: cluster,
            cells: [cluster, reason, sentence(message)],
          }))}
        />
      )}
    </article>
  );
}
