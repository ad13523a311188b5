import { visible } from "../parts/visible-text";
import { STATES } from "./drawing-colours";
import type { Colour, Colours, Fill, Pattern } from "./drawing-colours";
import { gpuRect, sliceRect, visibleTiles } from "./drawing-layout";
import type { Layout, Rect, Spot, Tile } from "./drawing-layout";
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
  selected: ReadonlySet<string>;
  /** Clusters that changed, and how visible that still is: 1 at first, 0 at the end. */
  changed: ReadonlySet<string>;
  glow: number;
  /** What a search finds: all else is dimmed. */
  found: ((cluster: DrawnCluster, workload: string | null) => boolean) | null;
  marks: Mark[];
  links: Link[];
  hovered: Spot | null;
  focused: Spot | null;
}

/** The colours and fonts of the style sheet, as a canvas takes them. */
export interface Palette {
  colour(colour: Colour): string;
  /** Black or white, whichever reads better on it. */
  ink(colour: Colour): string;
  family: string;
}

/** Shares of the scale that only an outline tells from the surface. */
const FAINT = 0.35;

const SCALE = ["--scale-0", "--scale-1", "--scale-2"];
const TONES: Record<Tone, string> = {
  accent: "--accent",
  good: "--good-text",
  bad: "--bad-text",
  muted: "--muted",
};

/** Reads the colours that hold for an element; `probe` is a child of it that nobody sees. */
export function paletteOf(probe: HTMLElement): Palette {
  const channels = new Map<Colour, number[]>();
  const read = (name: string): number[] => {
    probe.style.color = `var(${name})`;
    return (getComputedStyle(probe).color.match(/[\d.]+/g) ?? []).slice(0, 3).map(Number);
  };
  const rgb = (colour: Colour): number[] => {
    const key = typeof colour === "number" ? Math.round(colour * 64) / 64 : colour;
    const known = channels.get(key);
    if (known) return known;
    const found = typeof key === "string" ? read(key) : between(SCALE.map(rgb), key);
    channels.set(key, found);
    return found;
  };
  const { fontFamily } = getComputedStyle(probe);
  return {
    colour: (colour) => `rgb(${rgb(colour).join(" ")})`,
    ink: (colour) => (luminance(rgb(colour)) > 0.18 ? "#0b1018" : "#ffffff"),
    family: fontFamily,
  };
}

function between(stops: number[][], share: number): number[] {
  const at = Math.min(share, 0.9999) * (stops.length - 1);
  const [from, to] = [stops[Math.floor(at)]!, stops[Math.floor(at) + 1]!];
  return from.map((one, channel) => Math.round(one + (to[channel]! - one) * (at % 1)));
}

/** Relative luminance, as WCAG 2.2 defines it. */
function luminance(rgb: number[]): number {
  const linear = rgb.map((value) => {
    const share = value / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * linear[0]! + 0.7152 * linear[1]! + 0.0722 * linear[2]!;
}

/** Draws what is visible of a layout between two heights. */
export function draw(
  canvas: CanvasRenderingContext2D,
  layout: Layout,
  scene: Scene,
  palette: Palette,
  view: { top: number; height: number; ratio: number },
): void {
  const { ratio } = view;
  canvas.setTransform(ratio, 0, 0, ratio, 0, 0);
  canvas.fillStyle = palette.colour("--surface");
  canvas.fillRect(0, 0, layout.width, view.height);
  canvas.translate(0, -view.top);
  const painter = new Painter(canvas, layout, scene, palette);
  for (const title of layout.titles) {
    if (title.y + title.height > view.top && title.y < view.top + view.height) painter.title(title);
  }
  const [from, to] = visibleTiles(layout.tiles, view.top, view.top + view.height);
  for (let at = from; at < to; at += 1) painter.tile(layout.tiles[at]!);
  for (let at = from; at < to; at += 1) painter.outlines(layout.tiles[at]!);
  painter.marksAndLinks();
}

class Painter {
  #tiles: Map<string, Tile> | null = null;

  constructor(
    readonly canvas: CanvasRenderingContext2D,
    readonly layout: Layout,
    readonly scene: Scene,
    readonly palette: Palette,
  ) {
    canvas.textBaseline = "middle";
    canvas.lineWidth = 1;
  }

  title({ group, y, width }: Layout["titles"][number]): void {
    const end = this.text(group.title, 0, y + 15, width * 0.7, "--text", 600, 14);
    this.text(group.told, end + 10, y + 16, width - end - 10, "--muted", 400, 12);
  }

  tile(tile: Tile): void {
    const { canvas, layout, scene } = this;
    const { cluster } = tile;
    const dim = scene.found !== null && !scene.found(cluster, null);
    canvas.globalAlpha = dim ? 0.22 : 1;
    if (layout.zoom.detail === "cell") {
      this.box(tile, scene.colours.cell(cluster));
    } else {
      this.fill(tile, "--tile");
      if (layout.lengths.head) this.head(tile);
      this.gpus(tile, dim);
    }
    canvas.globalAlpha = 1;
  }

  head(tile: Tile): void {
    const { lengths, zoom } = this.layout;
    const { cluster } = tile;
    const [x, y] = [tile.x + lengths.pad, tile.y + lengths.pad + lengths.head / 2 - 4];
    let width = tile.width - 2 * lengths.pad;
    if (cluster.state !== "eligible") {
      this.box({ x: x + width - 9, y: y - 5, width: 9, height: 9 }, STATES[cluster.state]);
      width -= 14;
    }
    const size = zoom.detail === "labels" ? 14 : 12;
    const end = this.text(cluster.name, x, y, width, "--text", 600, size);
    const models = [...new Set(cluster.gpus.map((gpu) => gpu.model))];
    const many = `${cluster.gpus.length + cluster.omitted} × `;
    const told = models.length ? many + models.join(", ") : "";
    const left = x + width - end - 12;
    if (told && told.length * 6.5 < left) {
      this.text(told, x + width, y, left, "--muted", 400, 11, "right");
    }
    if (!cluster.gpus.length) {
      const below = tile.y + lengths.pad + lengths.head + 6;
      this.text("no GPU is known", x, below, width, "--muted", 400, 11);
    }
  }

  gpus(tile: Tile, dim: boolean): void {
    const { canvas, layout, scene } = this;
    const { detail } = layout.zoom;
    for (const [number, gpu] of tile.cluster.gpus.entries()) {
      const rect = gpuRect(layout, tile, number);
      this.fill(rect, "--gap");
      if (!gpu.layout.slices.length) this.outline(rect, "--outline", 1);
      for (const [at, slice] of gpu.layout.slices.entries()) {
        const box = sliceRect(rect, gpu.layout.memory, slice);
        const workload = gpu.workloads[at] ?? null;
        const fill = scene.colours.slice(tile.cluster, gpu, at);
        if (scene.found && !dim) canvas.globalAlpha = scene.found(tile.cluster, workload) ? 1 : 0.3;
        this.box(box, fill);
        if (workload !== null && typeof fill.colour === "number") this.inUse(box, fill);
        if (detail === "labels") this.compute(box, slice.compute, fill);
        if (detail === "labels") this.label(box, slice.device, workload, fill);
      }
      if (!dim) canvas.globalAlpha = 1;
    }
  }

  /** A dot in a slice in use, where the colour tells something else. */
  inUse(box: Rect, fill: Fill): void {
    const size = Math.max(2, Math.round(box.height / 4));
    const at = (from: number, length: number) => from + Math.round((length - size) / 2);
    this.canvas.fillStyle = this.ink(fill);
    this.canvas.fillRect(at(box.x, box.width), at(box.y, box.height), size, size);
  }

  /** Compute slices: one square each. */
  compute(box: Rect, slices: number, fill: Fill): void {
    const size = box.height > 24 ? 4 : 2;
    const step = Math.min(size * 2, (box.width - 4) / Math.max(1, slices));
    if (step < size + 1) return;
    this.canvas.fillStyle = this.ink(fill);
    for (let at = 0; at < slices; at += 1) {
      const x = Math.round(box.x + 4 + at * step);
      this.canvas.fillRect(x, box.y + box.height - size - 3, size, size);
    }
  }

  label(box: Rect, device: string, workload: string | null, fill: Fill): void {
    const named = device === "all" ? "whole GPU" : device;
    const text = workload === null ? named : workload || "others";
    const width = box.width - 9;
    const line = (text: string, y: number, weight: number, size: number) => {
      const cut = this.cut(text, width, weight, size);
      // Letters are hard to read on a pattern.
      if (fill.colour !== null && fill.pattern !== "none") {
        this.fill(
          { x: box.x + 2, y: y - 8, width: cut.width && cut.width + 6, height: 16 },
          fill.colour,
        );
      }
      this.written(text, box.x + 5, y, width, this.ink(fill), weight, size);
    };
    const two = workload !== null && box.height > 46;
    line(text, box.y + 11, workload ? 600 : 400, 12);
    if (two) line(named, box.y + 27, 400, 11);
  }

  outlines(tile: Tile): void {
    const { scene } = this;
    const { name } = tile.cluster;
    if (scene.selected.has(name)) this.outline(tile, "--accent", 2);
    if (scene.glow > 0 && scene.changed.has(name)) {
      this.canvas.globalAlpha = scene.glow;
      this.outline(tile, "--changed", 3);
      this.canvas.globalAlpha = 1;
    }
    const { hovered, focused } = scene;
    const workload = hovered && workloadAt(hovered);
    if (workload) {
      for (const rect of this.slicesOf(tile, workload)) this.outline(rect, "--text", 2);
    }
    if (hovered?.tile === tile) {
      this.outline(tile, "--text", 1);
      const rect = this.rectOf(hovered);
      if (rect) this.outline(rect, "--text", 2);
    }
    if (focused?.tile === tile) this.outline(this.rectOf(focused) ?? tile, "--accent", 3);
  }

  marksAndLinks(): void {
    const { marks, links } = this.scene;
    for (const { place, tone } of marks) {
      for (const rect of this.rectsAt(place)) this.outline(rect, TONES[tone], 2);
    }
    const ordered = [...links].sort((one, other) => Number(!!one.strong) - Number(!!other.strong));
    for (const link of ordered) this.link(link);
  }

  link({ from, to, tone, strong }: Link): void {
    const { canvas } = this;
    const [start, end] = [from, to].map((place) => around(this.rectsAt(place)));
    if (!start || !end) return;
    const [x, y] = [start.x + start.width / 2, start.y + start.height / 2];
    const [toX, toY] = [end.x + end.width / 2, end.y + end.height / 2];
    const bend = Math.min(90, Math.hypot(toX - x, toY - y) / 4);
    const [midX, midY] = [(x + toX) / 2, (y + toY) / 2 - bend];
    canvas.strokeStyle = canvas.fillStyle = this.palette.colour(TONES[tone]);
    canvas.globalAlpha = strong ? 1 : 0.55;
    canvas.lineWidth = strong ? 3 : 1.5;
    canvas.beginPath();
    canvas.moveTo(x, y);
    canvas.quadraticCurveTo(midX, midY, toX, toY);
    canvas.stroke();
    const angle = Math.atan2(toY - midY, toX - midX);
    canvas.beginPath();
    canvas.moveTo(toX, toY);
    for (const side of [0.4, -0.4]) {
      canvas.lineTo(toX - 11 * Math.cos(angle + side), toY - 11 * Math.sin(angle + side));
    }
    canvas.fill();
    canvas.globalAlpha = 1;
  }

  rectsAt(place: Place): Rect[] {
    this.#tiles ??= new Map(this.layout.tiles.map((tile) => [tile.cluster.name, tile]));
    const tile = this.#tiles.get(place.cluster);
    if (!tile) return [];
    const found = place.workload ? this.slicesOf(tile, place.workload) : [];
    return found.length ? found : [this.slicesOf(tile, null, place.device)[0] ?? tile];
  }

  /** The slices of a workload, or those of a device. */
  slicesOf(tile: Tile, workload: string | null, device?: string): Rect[] {
    if (this.layout.zoom.detail === "cell") return [];
    return tile.cluster.gpus.flatMap((gpu, number) =>
      gpu.layout.slices.flatMap((slice, at) => {
        const wanted = workload === null ? slice.device === device : gpu.workloads[at] === workload;
        if (!wanted) return [];
        return [sliceRect(gpuRect(this.layout, tile, number), gpu.layout.memory, slice)];
      }),
    );
  }

  rectOf({ tile, gpu, slice }: Spot): Rect | null {
    const known = gpu === null ? undefined : tile.cluster.gpus[gpu];
    if (!known || gpu === null) return null;
    const rect = gpuRect(this.layout, tile, gpu);
    const part = slice === null ? undefined : known.layout.slices[slice];
    return part ? sliceRect(rect, known.layout.memory, part) : rect;
  }

  /** A filled box with its pattern, or the outline of one. */
  box(box: Rect, { colour, pattern }: Fill): void {
    if (colour === null) {
      this.fill(box, "--tile");
      this.outline(box, "--outline", 1);
    } else {
      this.fill(box, colour);
      if (typeof colour === "number" && colour < FAINT) this.outline(box, "--outline", 1);
    }
    if (pattern === "none" || box.width < 5 || box.height < 4) return;
    const ink = colour === null ? this.palette.colour("--outline") : this.ink({ colour, pattern });
    this.canvas.fillStyle = patternOf(this.canvas, pattern, ink);
    this.canvas.fillRect(box.x, box.y, box.width, box.height);
  }

  fill({ x, y, width, height }: Rect, colour: Colour): void {
    this.canvas.fillStyle = this.palette.colour(colour);
    this.canvas.fillRect(x, y, width, height);
  }

  outline({ x, y, width, height }: Rect, colour: string, thick: number): void {
    if (width < 3 && thick === 1) return;
    this.canvas.strokeStyle = this.palette.colour(colour);
    this.canvas.lineWidth = thick;
    const inset = thick === 1 ? 0.5 : 0;
    this.canvas.strokeRect(x + inset, y + inset, width - 2 * inset, height - 2 * inset);
  }

  ink({ colour }: Fill): string {
    return colour === null ? this.palette.colour("--muted") : this.palette.ink(colour);
  }

  text(
    text: string,
    x: number,
    y: number,
    width: number,
    colour: string,
    weight: number,
    size: number,
    align: CanvasTextAlign = "left",
  ): number {
    return this.written(text, x, y, width, this.palette.colour(colour), weight, size, align);
  }

  /** Writes a text, cut in its middle to the width. Returns where it ends. */
  written(
    text: string,
    x: number,
    y: number,
    width: number,
    colour: string,
    weight: number,
    size: number,
    align: CanvasTextAlign = "left",
  ): number {
    const { canvas } = this;
    const cut = this.cut(text, width, weight, size);
    canvas.fillStyle = colour;
    canvas.textAlign = align;
    canvas.fillText(cut.text, x, y);
    return x + cut.width;
  }

  /** A text in the font that is asked for, as much of it as fits. */
  cut(text: string, width: number, weight: number, size: number): { text: string; width: number } {
    this.canvas.font = `${weight} ${size}px ${this.palette.family}`;
    return fitted(this.canvas, text, width);
  }
}

/** The workload of a slice; empty: none of ours. */
function workloadAt({ tile, gpu, slice }: Spot): string {
  return (gpu !== null && slice !== null && tile.cluster.gpus[gpu]?.workloads[slice]) || "";
}

function around(rects: Rect[]): Rect | null {
  if (!rects.length) return null;
  const x = Math.min(...rects.map((one) => one.x));
  const y = Math.min(...rects.map((one) => one.y));
  const right = Math.max(...rects.map((one) => one.x + one.width));
  const bottom = Math.max(...rects.map((one) => one.y + one.height));
  return { x, y, width: right - x, height: bottom - y };
}

/** Letters of a cut text that say nothing without more of them. */
const LETTERS = 3;

/** Texts that were measured, by font and width: measuring is what a frame spends most on. */
const measured = new Map<string, { text: string; width: number }>();

function fitted(canvas: CanvasRenderingContext2D, text: string, width: number) {
  const key = `${canvas.font} ${Math.round(width)} ${text}`;
  const known = measured.get(key);
  if (known) return known;
  const letters = [...visible(text)];
  const cut = (kept: number) =>
    kept >= letters.length
      ? letters.join("")
      : `${letters.slice(0, Math.ceil(kept / 2)).join("")}…${letters.slice(letters.length - Math.floor(kept / 2)).join("")}`;
  let [low, high] = [0, letters.length];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (canvas.measureText(cut(middle)).width <= width) low = middle;
    else high = middle - 1;
  }
  const shown = low > LETTERS || low === letters.length ? cut(low) : "";
  if (measured.size > 50_000) measured.clear();
  const found = { text: shown, width: canvas.measureText(shown).width };
  measured.set(key, found);
  return found;
}

const patterns = new Map<string, CanvasPattern>();

function patternOf(canvas: CanvasRenderingContext2D, pattern: Pattern, ink: string): CanvasPattern {
  const key = `${pattern} ${ink}`;
  const known = patterns.get(key);
  if (known) return known;
  const tile = document.createElement("canvas");
  tile.width = tile.height = 6;
  const pen = tile.getContext("2d")!;
  pen.strokeStyle = pen.fillStyle = ink;
  pen.globalAlpha = 0.4;
  if (pattern === "dots") pen.fillRect(2, 2, 2, 2);
  if (pattern === "cross") {
    pen.fillRect(0, 0, 6, 1);
    pen.fillRect(0, 0, 1, 6);
  }
  if (pattern === "lines") {
    pen.lineWidth = 1.4;
    for (const from of [-6, 0, 6]) {
      pen.moveTo(from, 6);
      pen.lineTo(from + 6, 0);
    }
    pen.stroke();
  }
  const made = canvas.createPattern(tile, "repeat")!;
  patterns.set(key, made);
  return made;
}
