import { sankey, sankeyLinkHorizontal } from "d3-sankey";
import { useMemo, useState } from "preact/hooks";
import type { Fleet, Move } from "../api/wire";
import { Choice } from "../parts/choice";
import { counted } from "../parts/sentences";
import { Table } from "../parts/table";
import { useSize } from "../parts/use-size";
import { drawnFleet } from "../fleet/drawn-fleet";
import { groupings, titleOf } from "../fleet/drawn-groups";
import { flowsOf, type Flow } from "./flows";

/** CSS pixels of a group's bar, between two groups, and of a line of text. */
const [BAR, GAP, LINE] = [12, 14, 16];

const VERBS: Record<Flow["kind"], string> = {
  stays: "stay in",
  moves: "move to",
  starts: "are placed in",
  stops: "lose their place:",
};

/** How many places go from where to where, by groups of clusters: for plans of too many moves to connect. */
export function FlowDiagram({ moves, fleet }: { moves: Move[]; fleet: Fleet }) {
  const choices = useMemo(() => groupsOf(fleet), [fleet]);
  const [chosen, choose] = useState("");
  const { key, groups } = choices.find((item) => item.key === chosen) ?? choices[0]!;
  const flows = useMemo(() => flowsOf(moves, groups), [moves, groups]);
  return (
    <section aria-label="Flows between groups">
      <Choice
        label="Group by "
        value={key}
        options={Object.fromEntries(choices.map((item) => [item.key, item.name]))}
        onChange={choose}
      />
      <Diagram flows={flows} />
      <details>
        <summary>The same as a table</summary>
        <Table
          caption="Places by group"
          heads={["Now", "What happens", "Planned", "Places"]}
          rows={flows.map(({ from, to, kind, places }) => ({
            key: `${kind} ${from} ${to}`,
            cells: [from, kind, to, places],
            changed: kind !== "stays",
          }))}
        />
      </details>
    </section>
  );
}

/** The ways to group clusters that tell some apart, and at last the clusters themselves. */
function groupsOf(fleet: Fleet): { key: string; name: string; groups: Map<string, string> }[] {
  const clusters = drawnFleet(fleet, null);
  const { "": _, ...ways } = groupings(clusters);
  const found = Object.entries(ways).map(([key, name]) => {
    const groups = new Map(clusters.map((item) => [item.name, titleOf(item, key)]));
    return { key, name, groups };
  });
  const apart = found.filter(({ groups }) => new Set(groups.values()).size > 1);
  return [...apart, { key: CLUSTER, name: "cluster", groups: new Map() }];
}

const CLUSTER = "cluster";

function Diagram({ flows }: { flows: Flow[] }) {
  const [box, width] = useSize<HTMLDivElement>();
  const layout = useMemo(() => layoutOf(flows, width), [flows, width]);
  const said = flows.map(sentenceOf).join("; ");
  return (
    <div ref={box} class="flows">
      {layout && (
        <svg viewBox={`0 0 ${width} ${layout.height}`} role="img" aria-label={said}>
          {layout.links.map(({ flow, path, width: thick }) => (
            <path
              key={sentenceOf(flow)}
              class={flow.kind}
              d={path}
              style={{ strokeWidth: `${thick}px` }}
            >
              <title>{sentenceOf(flow)}</title>
            </path>
          ))}
          {layout.nodes.map(({ name, left, x, top, bottom }) => (
            <rect
              key={`${left} ${name}`}
              x={x}
              y={top}
              width={BAR}
              height={Math.max(1, bottom - top)}
            />
          ))}
        </svg>
      )}
      {/* Labels are no SVG text, because a name may have to be isolated by an element of HTML. */}
      {layout?.nodes.map(({ name, left, top, bottom, places }) => (
        <span
          key={`${left} ${name}`}
          aria-hidden="true"
          class={left ? "group" : "group right"}
          style={{ top: `${(top + bottom) / 2 - LINE / 2}px` }}
          title={name}
        >
          {name} <b>{places}</b>
        </span>
      ))}
    </div>
  );
}

function layoutOf(flows: Flow[], width: number) {
  if (width === 0 || flows.length === 0) return null;
  const sides = [
    [...new Set(flows.map((flow) => flow.from))],
    [...new Set(flows.map((flow) => flow.to))],
  ] as const;
  const height = Math.max(sides[0].length, sides[1].length) * (LINE + GAP) + 80;
  const { nodes, links } = sankey<{ key: string; name: string; left: boolean }, { flow: Flow }>()
    .nodeId((node) => node.key)
    .nodeWidth(BAR)
    .nodePadding(GAP)
    .extent([
      [1, GAP],
      [width - 1, height - GAP],
    ])({
    nodes: sides.flatMap((names, side) =>
      names.map((name) => ({ key: `${side}${name}`, name, left: side === 0 })),
    ),
    links: flows.map((flow) => ({
      source: `0${flow.from}`,
      target: `1${flow.to}`,
      value: flow.places,
      flow,
    })),
  });
  const curve = sankeyLinkHorizontal();
  return {
    height,
    nodes: nodes.map((node) => ({
      ...{ name: node.name, left: node.left, places: node.value ?? 0 },
      ...{ x: node.x0 ?? 0, top: node.y0 ?? 0, bottom: node.y1 ?? 0 },
    })),
    links: links.map((link) => ({
      flow: link.flow,
      path: curve(link as never) ?? "",
      width: Math.max(1, link.width ?? 1),
    })),
  };
}

function sentenceOf({ from, to, kind, places }: Flow): string {
  return `${counted(places, "place")} of ${from} ${VERBS[kind]} ${kind === "stops" ? "" : to}`.trim();
}
