import type { Finding, Fleet } from "../api/wire";
import { Command, commandOf } from "../parts/command";
import { byNaturalOrder } from "../parts/natural-order";
import { counted, listed, sentence } from "../parts/sentences";
import { ago } from "../parts/times";
import { useAddress } from "../parts/use-address";
import { type Cause, causesOf } from "./causes";

const MARKS = { error: "✖", warning: "▲", info: "●" };

/** Says how bad a cause is: by its shape, its colour and in words. */
export function SeverityMark({ severity }: { severity: Cause["severity"] }) {
  return (
    <span class={`severity ${severity}`}>
      <span aria-hidden="true">{MARKS[severity]}</span>
      <span class="unseen">{severity}: </span>
    </span>
  );
}

/** What is wrong in the fleet by its causes, with the next step of each. */
export function Findings({ fleet }: { fleet: Fleet }) {
  const [opened] = useAddress("cause");
  const omitted = fleet.omitted.findings ?? 0;
  if (fleet.findings.length === 0) return <p class="notice good">Nothing is wrong.</p>;
  return (
    <section aria-label="Findings">
      {causesOf(fleet.findings).map((cause) => (
        <article
          key={cause.key}
          class="card cause"
          aria-current={cause.key === opened || undefined}
        >
          <h2>
            <SeverityMark severity={cause.severity} /> {cause.reason}{" "}
            <span class="phase">
              {counted(cause.count, cause.stage)}
              {cause.oldest && `, the first ${ago(cause.oldest)}`}
            </span>
          </h2>
          <Told items={cause.findings.slice(0, UNFOLDED)} fleet={fleet} />
          {cause.findings.length > UNFOLDED && (
            <details open={cause.key === opened}>
              <summary>{cause.findings.length - UNFOLDED} more</summary>
              <Told items={cause.findings.slice(UNFOLDED)} fleet={fleet} />
            </details>
          )}
        </article>
      ))}
      {omitted > 0 && <p>{omitted} more are left out.</p>}
    </section>
  );
}

/** Findings of a cause that are shown before it is opened. */
const UNFOLDED = 1;

function Told({ items, fleet }: { items: Finding[]; fleet: Fleet }) {
  return (
    <ul class="findings">
      {items.map((item, position) => (
        <li key={`${position} ${item.name}`}>
          <p>
            <strong>
              {item.stage} {item.name}
            </strong>
            : {sentence(item.message)}
            {item.since && ` It began ${ago(item.since)}.`}
          </p>
          <p>Next: {sentence(item.next)}</p>
          <Names finding={item} />
          <Command text={explaining(item, fleet)} />
        </li>
      ))}
    </ul>
  );
}

/** All objects with the cause, as far as they are told. */
function Names({ finding: { names = [], count = 1 } }: { finding: Finding }) {
  if (names.length < 2) return null;
  return (
    <details>
      <summary>All {count}</summary>
      <p>{listed([...names].sort(byNaturalOrder), names.length, count)}</p>
    </details>
  );
}

/** The command that tells more of a finding; null: there is none. */
function explaining({ stage, name }: Finding, { namespace, scorers }: Fleet): string | null {
  const home = scorers.find((item) => item.name === name)?.namespace;
  if (stage === "scorer")
    return home ? commandOf`kubectl describe dynamicscorer ${name} -n ${home}` : null;
  if (stage === "score") return commandOf`dsf scores --score ${name}`;
  if (stage === "cluster") return commandOf`kubectl describe managedcluster ${name}`;
  if (stage === "workload")
    return commandOf`kubectl describe manifestworkreplicaset ${name} -n ${namespace}`;
  return commandOf`dsf status -n ${namespace}`;
}
