import type { Finding, Fleet } from "../api/wire";
import { Ago } from "../parts/ago";
import { Command, commandOf } from "../parts/command";
import { byNaturalOrder } from "../parts/natural-order";
import { Said } from "../parts/said";
import { listed } from "../parts/sentences";
import { useAddress } from "../parts/use-address";
import { type Cause, causesOf, objectsOf } from "./causes";
import { WhyButton } from "./workloads";

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

interface Props {
  fleet: Fleet;
  onWhy: (workload: string, cluster: string) => void;
}

/** What is wrong in the fleet by its causes, with the next step of each. */
export function Findings(props: Props) {
  const { fleet } = props;
  const [opened] = useAddress("cause");
  const omitted = fleet.omitted.findings ?? 0;
  if (fleet.findings.length === 0) return <p class="notice good">Nothing is wrong.</p>;
  return (
    <section aria-label="Findings">
      {causesOf(fleet.findings).map((cause) => (
        <article
          key={cause.reason}
          class="card cause"
          aria-current={cause.reason === opened || undefined}
        >
          <h2>
            <SeverityMark severity={cause.severity} /> {cause.reason}{" "}
            <span class="phase">
              {objectsOf(cause.own)}
              {cause.oldest && (
                <>
                  , the first <Ago time={cause.oldest} />
                </>
              )}
            </span>
          </h2>
          <Told items={cause.own} {...props} />
          {cause.others.length > 0 && (
            <details open={cause.reason === opened}>
              <summary>Because of it: {objectsOf(cause.others)}</summary>
              <Told items={cause.others} {...props} />
            </details>
          )}
        </article>
      ))}
      {omitted > 0 && <p>{omitted} more are left out.</p>}
    </section>
  );
}

function Told({ items, fleet, onWhy }: Props & { items: Finding[] }) {
  return (
    <ul class="findings">
      {items.map((item, position) => (
        <li key={`${position} ${item.name}`}>
          <p>
            <strong>
              {item.stage} {item.name}
            </strong>
            : <Said of={item.message} />
            {item.since && (
              <>
                {" "}
                It began <Ago time={item.since} />.
              </>
            )}
          </p>
          <p>
            Next: <Said of={item.next} />{" "}
            {item.stage === "workload" && (
              <WhyButton workload={item.name} fleet={fleet} onWhy={onWhy} />
            )}
          </p>
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
  if (stage === "workload") return commandOf`dsf why ${name} -n ${namespace}`;
  return commandOf`dsf status -n ${namespace}`;
}
