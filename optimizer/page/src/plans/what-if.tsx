import { useEffect, useId, useMemo, useRef, useState } from "preact/hooks";
import type { Added, OptimizerApi, Wish } from "../api/optimizer-api";
import type { Fleet, FleetScore, Kept } from "../api/wire";
import { Ago } from "../parts/ago";
import { Check } from "../parts/choice";
import { byNaturalOrder } from "../parts/natural-order";
import { ProblemNotice } from "../parts/notice";
import { useCall, usePolled } from "../parts/use-call";
import { type Answered, answered, changesClusters } from "./change-cost";
import { costTold, withNow, withoutChange } from "./change-cost";
import { BY_NOW, gainTold } from "./gain-told";
import { PlanDrawing } from "./plan-drawing";
import { PlanView } from "./plan-view";
import { applying, type Wished } from "./wish-address";

interface Props {
  api: OptimizerApi;
  fleet: Fleet;
  wished: Wished;
  /** Whether the fleet as it is is planned only on a click, because a plan of somebody is shown above. */
  waits: boolean;
  onApplied: () => void;
}

/** Milliseconds without a change after which a wish is planned. */
const SETTLED = 300;

/** Asks for a plan without applying it, at each change: other weights, other clusters, budgets. */
export function WhatIf({ api, fleet, wished, waits, onApplied }: Props) {
  const { wish, change: onWish } = wished;
  const [call, start] = useCall<Answered>();
  const [without, compare] = useCall<Answered>();
  const [kept] = usePolled(() => api.kept(fleet.namespace), [api, fleet.namespace]);
  const own = kept.answer?.[0];
  const known = kept.answer !== null || kept.problem !== null;
  const [inForce, setInForce] = useState<Record<string, number>>({});
  const [progress, tell] = useState("");
  const [chosen, choose] = useState("");
  const asked = useRef<{ wish: Wish; stop: AbortController } | null>(null);
  const settling = useRef(0);
  const plan = () => {
    clearTimeout(settling.current);
    asked.current?.stop.abort();
    const { signal } = (asked.current = { wish, stop: new AbortController() }).stop;
    tell("Planning");
    void start(() => answered(api, fleet, wish, own?.name, tell, signal));
  };
  useEffect(() => {
    // A proof, which may take long, waits for a click.
    if (!known || fleet.scores.length === 0 || wish.prove || wish === asked.current?.wish) return;
    if (waits && !asked.current && isAsItIs(wish) && !wish.stepwise) return;
    settling.current = setTimeout(plan, SETTLED);
    return () => clearTimeout(settling.current);
  }, [wish, known]);
  useEffect(() => {
    const found = call.answer;
    if (!found || !asked.current) return;
    if (Object.keys(found.wish.objective).length === 0) setInForce(found.weights);
    if (!changesClusters(found.wish)) return;
    const [{ signal }, alike] = [asked.current.stop, withoutChange(found)];
    void compare(async () => ({
      ...(await answered(api, fleet, alike, own?.name, () => {}, signal)),
      wish: found.wish,
    }));
  }, [call.answer]);
  useEffect(() => () => asked.current?.stop.abort(), []);
  const answer = call.answer;
  const stale = answer !== null && answer.wish !== wish;
  const alike = answer && without.answer?.wish === answer.wish ? without.answer : null;
  const shown = useMemo(
    () => answer && (alike ? withNow(answer.plan, alike) : answer.plan),
    [answer, alike],
  );
  return (
    <section aria-label="What if">
      <form onSubmit={(event) => event.preventDefault()}>
        <div class="wishes">
          <Weights fleet={fleet} wish={wish} inForce={inForce} onWish={onWish} />
          <ClusterWishes fleet={fleet} wish={wish} onWish={onWish} />
        </div>
        <div class="wish-end">
          {/* A click, which Enter is too: a frame without allow-forms submits nothing. */}
          <button
            type="submit"
            class="primary"
            disabled={(call.running && wish === asked.current?.wish) || fleet.scores.length === 0}
            onClick={plan}
          >
            Plan
          </button>
          <Check
            label="Prove that no plan is better, which can take as long as the solver may"
            checked={wish.prove}
            onChange={(prove) => onWish({ ...wish, prove })}
          />
          <Check
            label="Apply it step by step"
            checked={wish.stepwise}
            onChange={(stepwise) => onWish({ ...wish, stepwise })}
          />
          <span>
            Each change plans again. Nothing is written. A cluster in the drawing can be lost,
            drained or copied.
          </span>
        </div>
      </form>
      <p class="live" role="status">
        {call.running ? `${progress}…` : stale && "This plan answers an earlier wish. Plan again."}
        {call.running && stale && " What you see answers the wish before."}
      </p>
      {call.problem && <ProblemNotice problem={call.problem} />}
      {chosen && (
        <ClusterChoice
          key={chosen}
          name={chosen}
          fleet={fleet}
          wish={wish}
          onWish={onWish}
          onClose={choose}
        />
      )}
      {answer && isAsItIs(answer.wish) && <AsItIs kept={own} />}
      {answer && !stale && changesClusters(answer.wish) && (
        <p class="notice">
          {alike
            ? costTold(answer, alike)
            : without.problem && !without.running
              ? `What the change itself costs is not known: ${without.problem.detail || without.problem.title}`
              : "Comparing with the best plan without the change…"}
        </p>
      )}
      {!answer && <PlanDrawing fleet={fleet} plan={null} onCluster={choose} />}
      {answer && shown && (
        <PlanView
          api={api}
          fleet={fleet}
          shown={shown}
          by={
            <>
              {BY_NOW}, planned <Ago time={answer.time} />
            </>
          }
          // What runs on a lost cluster has no value in a plan that lacks it.
          {...(changesClusters(answer.wish) && !alike && { now: null })}
          stale={stale}
          command={applying(
            fleet.namespace,
            { ...answer.wish, ...(own && { optimization: own.name }) },
            answer.plan.digest,
          )}
          whole={!changesClusters(answer.wish)}
          onCluster={choose}
          onApplied={onApplied}
        />
      )}
    </section>
  );
}

interface WishProps {
  fleet: Fleet;
  wish: Wish;
  onWish: (wish: Wish) => void;
}

/** Whether a wish changes neither clusters nor weights. */
function isAsItIs(wish: Wish): boolean {
  return !changesClusters(wish) && Object.keys(wish.objective).length === 0;
}

/** Why the plan for the fleet as it is may gain something else than what is on offer. */
function AsItIs({ kept }: { kept: Kept | undefined }) {
  return (
    <p class="notice">
      The fleet as it is, {BY_NOW}, with the moves that together raise its value.
      {kept &&
        ` ${kept.name}, which keeps it placed, counts otherwise: it has ${gainTold(kept)}; ${kept.move_rule}.`}
    </p>
  );
}

interface WeightProps extends WishProps {
  /** The weights that count as long as the wish says none. */
  inForce: Record<string, number>;
}

function Weights({ fleet, ...props }: WeightProps) {
  return (
    <fieldset class="weights">
      <legend>How much each score counts</legend>
      <p>A weight of 0 leaves a score out. A budget limits the sum of a score over all places.</p>
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
            <ScoreWish key={score.name} score={score} {...props} />
          ))}
        </tbody>
      </table>
    </fieldset>
  );
}

function ClusterWishes({ fleet, wish, onWish }: WishProps) {
  const [gpus, setGpus] = useState<TypedGpus>({ count: "", product: "" });
  return (
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
      <div class="with-gpus">
        Added: with <GpusInput fleet={fleet} gpus={gpus} onGpus={setGpus} />
        <ClusterNames
          label="one more like"
          fleet={fleet}
          names={wish.add.map((item) => item.name)}
          told={(name) => toldOf(wish.add.find((item) => item.name === name))}
          onAdd={(like) => onWish(withOneLike(wish, fleet, like, gpus))}
          onNames={(names) =>
            onWish({ ...wish, add: wish.add.filter((item) => names.includes(item.name)) })
          }
        />
      </div>
    </fieldset>
  );
}

/** What to pretend about a cluster that was chosen in the drawing. */
function ClusterChoice(props: WishProps & { name: string; onClose: (name: string) => void }) {
  const { name, fleet, wish, onWish, onClose } = props;
  const first = useRef<HTMLButtonElement>(null);
  useEffect(() => first.current?.focus(), [name]);
  const wanted = (change: Partial<Wish>) => {
    onWish({ ...wish, ...change });
    onClose("");
  };
  const others = {
    lose: wish.lose.filter((other) => other !== name),
    drain: wish.drain.filter((other) => other !== name),
  };
  const added = wish.add.some((item) => item.name === name);
  const [gpus, setGpus] = useState({ count: "", product: modelOf(fleet, name) });
  const changed = wish.lose.includes(name) || wish.drain.includes(name) || added;
  return (
    <div class="card" role="group" aria-label={`What if, for ${name}`}>
      <p>
        What if <strong>{name}</strong> …
      </p>
      {changed ? (
        <button
          type="button"
          ref={first}
          onClick={() => wanted({ ...others, add: wish.add.filter((item) => item.name !== name) })}
        >
          … were as it is now
        </button>
      ) : (
        <>
          <button
            type="button"
            ref={first}
            onClick={() => wanted({ ...others, lose: [...others.lose, name] })}
          >
            … were lost
          </button>{" "}
          <button
            type="button"
            onClick={() => wanted({ ...others, drain: [...others.drain, name] })}
          >
            … were drained
          </button>{" "}
          <span class="with-gpus">
            <button type="button" onClick={() => wanted(withOneLike(wish, fleet, name, gpus))}>
              … had one more like it
            </button>
            with <GpusInput fleet={fleet} gpus={gpus} onGpus={setGpus} />
          </span>
        </>
      )}{" "}
      <button type="button" class="quiet" onClick={() => onClose("")}>
        Close
      </button>
    </div>
  );
}

/** The longest name of a managed cluster. */
const LONGEST = 253;

/** GPUs of an added cluster as they are typed; what is empty is as on the other cluster. */
interface TypedGpus {
  count: string;
  product: string;
}

function GpusInput(props: { fleet: Fleet; gpus: TypedGpus; onGpus: (gpus: TypedGpus) => void }) {
  const { fleet, gpus, onGpus } = props;
  const id = useId();
  const models = new Set(fleet.clusters.flatMap((item) => item.gpus.map(({ model }) => model)));
  return (
    <>
      <input
        type="number"
        min="1"
        max="512"
        placeholder="all"
        aria-label="How many GPUs it has"
        value={gpus.count}
        onInput={(event) => onGpus({ ...gpus, count: event.currentTarget.value })}
      />
      <span aria-hidden="true">×</span>
      <input
        type="text"
        list={id}
        placeholder="its GPUs"
        aria-label="Model of its GPUs"
        value={gpus.product}
        onInput={(event) => onGpus({ ...gpus, product: event.currentTarget.value })}
      />
      <datalist id={id}>
        {[...models].sort(byNaturalOrder).map((model) => (
          <option key={model} value={model} />
        ))}
      </datalist>
    </>
  );
}

function modelOf(fleet: Fleet, cluster: string): string {
  return fleet.clusters.find((item) => item.name === cluster)?.gpus[0]?.model ?? "";
}

/** An added cluster in words, such as `worker01-like-2, with 8 × H100-80GB`. */
function toldOf(added: Added | undefined): string {
  const gpus = (added?.gpus ?? []).map(({ product, count }) => `${count} × ${product}`);
  return [added?.name, ...gpus].join(", with ");
}

/** A wish with one more cluster like another one, under a name that is free. */
function withOneLike(wish: Wish, fleet: Fleet, like: string, typed: TypedGpus): Wish {
  const { gpus: own = [] } = fleet.clusters.find((item) => item.name === like) ?? {};
  const [model, all] = [modelOf(fleet, like), own.reduce((sum, item) => sum + item.count, 0)];
  const product = typed.product || model;
  const count = Number(typed.count || all);
  const gpus = typed.count || product !== model ? { gpus: [{ product, count }] } : {};
  const taken = new Set([...fleet.clusters, ...wish.add].map((item) => item.name));
  for (let number = 2; ; number += 1) {
    const end = `-like-${number}`;
    const name = like.slice(0, LONGEST - end.length) + end;
    if (!taken.has(name)) return { ...wish, add: [...wish.add, { name, like, ...gpus }] };
  }
}

/** The weights that can be dragged; larger ones are typed. */
const WEIGHTS = 5;

function ScoreWish(props: Omit<WeightProps, "fleet"> & { score: FleetScore }) {
  const { score, wish, inForce, onWish } = props;
  const name = score.display_name || score.name;
  const weights = Object.keys(wish.objective).length > 0 ? wish.objective : inForce;
  const weight = weights[score.name] ?? 0;
  const weigh = (event: { currentTarget: HTMLInputElement }) => {
    const all = Object.entries(changed(weights, score.name, event.currentTarget.value));
    const counting = all.filter(([, each]) => each !== 0);
    // Without any weight those in force would count again.
    const objective = counting.length ? Object.fromEntries(counting) : { [score.name]: 0 };
    onWish({ ...wish, objective });
  };
  return (
    <tr>
      <th scope="row">{name}</th>
      <td>
        <input
          type="range"
          min="0"
          max={Math.max(WEIGHTS, Math.ceil(weight))}
          step="0.1"
          aria-label={`How much ${name} counts`}
          value={weight}
          onInput={weigh}
        />{" "}
        <input
          type="number"
          min="0"
          step="any"
          aria-label={`Weight of ${name}`}
          value={weight}
          onInput={weigh}
        />
      </td>
      <td>
        <input
          type="number"
          min="0"
          step="any"
          placeholder="no budget"
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

/** The numbers with one changed; an empty text removes it. */
function changed(
  numbers: Record<string, number>,
  name: string,
  text: string,
): Record<string, number> {
  const { [name]: _, ...others } = numbers;
  const value = Number(text);
  const said = text !== "" && Number.isFinite(value);
  return said ? { ...others, [name]: value } : others;
}

interface ClusterNamesProps {
  label: string;
  fleet: Fleet;
  names: string[];
  onNames: (names: string[]) => void;
  /** What is said of a name; missing: the name. */
  told?: (name: string) => string;
  /** Takes a name of the fleet; missing: it joins `names`. */
  onAdd?: (name: string) => void;
}

/** Cluster names to choose by typing: lists of thousands are no menu. */
function ClusterNames({ label, fleet, names, told, onNames, onAdd }: ClusterNamesProps) {
  const id = useId();
  const [unknown, setUnknown] = useState("");
  const add = (event: Event & { currentTarget: HTMLInputElement }) => {
    const name = event.currentTarget.value.trim();
    const found = fleet.clusters.some((cluster) => cluster.name === name);
    setUnknown(found ? "" : name);
    if (!found) return;
    if (onAdd) onAdd(name);
    else onNames([...new Set([...names, name])]);
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
          {told?.(name) ?? name} <span aria-hidden="true">×</span>
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
