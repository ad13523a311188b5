import type { Colours } from "./drawing-colours";
import type { Spot } from "./drawing-layout";
import type { DrawnCluster } from "./drawn-fleet";

/** Where something is in a drawing: a workload's slices, else those of a device, else the cluster. */
export interface Place {
  cluster: string;
  workload?: string;
  device?: string;
}

/** How something is meant: as a colour of the style sheet, beside its label. */
export type Tone = "accent" | "good" | "bad" | "muted";

/** An outline around a place. */
export interface Mark {
  place: Place;
  tone: Tone;
}

/** An arrow from one place to another; strong: drawn above the others. */
export interface Link {
  from: Place;
  to: Place;
  tone: Tone;
  strong?: boolean;
}

/** All that is drawn besides the layout. */
export interface Scene {
  colours: Colours;
  /** What a search finds: all else is dimmed. */
  found: ((cluster: DrawnCluster, workload: string | null) => boolean) | null;
  marks: Mark[];
  links: Link[];
  hovered: Spot | null;
  focused: Spot | null;
}
