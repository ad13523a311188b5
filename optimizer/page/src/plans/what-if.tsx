import { useId, useState } from "preact/hooks";
import type { OptimizerApi, ShownPlan, Wish } from "../api/optimizer-api";
import type { Fleet, FleetScore } from "../api/wire";
import { Busy, ProblemNotice } from "../parts/notice";
import { useCall } from "../parts/use-call";
import { PlanView } from "./plan-view";

interface Props {
  api: OptimizerApi;
  fleet: Fleet;
  wish: Wish;
  onWish: (wish: Wish) => void;
  onApplied: () => void;
}

/** Asks for a plan without applying it: other weights, lost clusters, budgets. */
export function WhatIf({ api, fleet, wish, onWish, onApplied }: Props) {
  const [call, start] = useCall<ShownPlan>();
  const [planned, setPlanned] = useState(0);
  const [progress, tell] = useState("");
  const plan = (event: Event) => {
    event.preventDefault();
    setPlanned(planned + 1);
    tell("Planning");
    void start(() => api.plan(fleet.namespace, wish, tell));
  };
  return (
    <section aria-label="What if">
      <form>
        <fieldset>
          <legend>How much each score counts</legend>
          <p>
            A weight of 0 leaves a score out. A budget limits the sum of a score over all places.
          </p>
          <table>
            <thead>
              <tr>
                <th scope="col">Score</th>
                <th scope="col">Weight</th>
                <th scope="col">Budget</th>
              </tr>
            </thead>
            <tbody>
              {fleet.scores.map((score) => (
                <ScoreWish key={score.name} score={score} wish={wish} onWish={onWish} />
              ))}
            </tbody>
          </table>
        </fieldset>
        <fieldset>
          <legend>Clusters</legend>
          <ClusterNames
            label="Lost"
            fleet={fleet}
            names={wish.lose}
            onNames={(lose) => onWish({ ...wish, lose })}
          />
          <ClusterNames
            label="Drained: they stay, and run nothing"
            fleet={fleet}
            names={wish.drain}
            onNames={(drain) => onWish({ ...wish, drain })}
          />
        </fieldset>
        <label>
          <input
            type="checkbox"
            checked={wish.prove}
            onChange={(event) => onWish({ ...wish, prove: event.currentTarget.checked })}
          />{" "}
          Prove that no plan is better, which can take as long as the solver may
        </label>
        {/* A click, which Enter is too: a frame without allow-forms submits nothing. */}
        <button
          type="submit"
          class="primary"
          disabled={call.running || fleet.scores.length === 0}
          onClick={plan}
        >
          Plan
        </button>{" "}
        Nothing is written.
      </form>
      {call.running && <Busy what={progress} />}
      {call.problem && <ProblemNotice problem={call.problem} />}
      {call.answer && !call.running && (
        <PlanView key={planned} api={api} shown={call.answer} onApplied={onApplied} />
      )}
    </section>
  );
}

/** A wish that counts the first score only. */
export function firstWish(fleet: Fleet): Wish {
  const first = fleet.scores.find((score) => score.columns.some((column) => column.app));
  const name = (first ?? fleet.scores[0])?.name;
  return { objective: name ? { [name]: 1 } : {}, lose: [], drain: [], budget: {}, prove: false };
}

function ScoreWish(props: { score: FleetScore; wish: Wish; onWish: (wish: Wish) => void }) {
  const { score, wish, onWish } = props;
  const name = score.display_name || score.name;
  return (
    <tr>
      <th scope="row">{name}</th>
      <td>
        <input
          type="number"
          min="0"
          step="any"
          aria-label={`Weight of ${name}`}
          value={wish.objective[score.name] ?? 0}
          onInput={(event) =>
            onWish({
              ...wish,
              objective: changed(wish.objective, score.name, event.currentTarget.value, 0),
            })
          }
        />
      </td>
      <td>
        <input
          type="number"
          min="0"
          step="any"
          placeholder="no limit"
          aria-label={`Budget of ${name}`}
          value={wish.budget[score.name] ?? ""}
          onInput={(event) =>
            onWish({ ...wish, budget: changed(wish.budget, score.name, event.currentTarget.value) })
          }
        />
      </td>
    </tr>
  );
}

/** The numbers with one changed; an empty text, or the number that means nothing, removes it. */
function changed(
  numbers: Record<string, number>,
  name: string,
  text: string,
  nothing?: number,
): Record<string, number> {
  const { [name]: _, ...others } = numbers;
  const value = Number(text);
  const said = text !== "" && Number.isFinite(value) && value !== nothing;
  return said ? { ...others, [name]: value } : others;
}

interface ClusterNamesProps {
  label: string;
  fleet: Fleet;
  names: string[];
  onNames: (names: string[]) => void;
}

/** Cluster names to choose by typing: lists of thousands are no menu. */
function ClusterNames({ label, fleet, names, onNames }: ClusterNamesProps) {
  const id = useId();
  const [unknown, setUnknown] = useState("");
  const add = (event: Event & { currentTarget: HTMLInputElement }) => {
    const name = event.currentTarget.value.trim();
    const found = fleet.clusters.some((cluster) => cluster.name === name);
    setUnknown(found ? "" : name);
    if (!found) return;
    onNames([...new Set([...names, name])]);
    event.currentTarget.value = "";
  };
  return (
    <div class="names">
      <label>
        {label}
        <input type="text" list={id} placeholder="add a cluster" onChange={add} />
      </label>
      <datalist id={id}>
        {fleet.clusters.map((cluster) => (
          <option key={cluster.name} value={cluster.name} />
        ))}
      </datalist>
      {names.map((name) => (
        <button
          key={name}
          type="button"
          class="chip"
          aria-label={`${name}: remove`}
          onClick={() => onNames(names.filter((other) => other !== name))}
        >
          {name} <span aria-hidden="true">×</span>
        </button>
      ))}
      {unknown && (
        <p class="notice bad" role="alert">
          The fleet has no cluster {unknown}, so no plan considers it. Choose a name of the list.
        </p>
      )}
    </div>
  );
}
