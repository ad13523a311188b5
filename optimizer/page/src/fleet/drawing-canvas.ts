import { Brush } from "./drawing-brush";
import { type Fill, STATES } from "./drawing-colours";
import { gpuRect, sliceRect, visibleTiles } from "./drawing-layout";
import type { Layout, Rect, Spot, Tile } from "./drawing-layout";
import type { Palette } from "./drawing-palette";
import type { Link, Place, Scene, Tone } from "./drawing-scene";

const TONES: Record<Tone, string> = {
  accent: "--accent",
  good: "--good-text",
  bad: "--bad-text",
  muted: "--muted",
};

/** Width of a GPU in whose slices neither patterns nor outlines can be told. */
const TINY = 30;

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
  painter.flush();
  for (let at = from; at < to; at += 1) painter.outlines(layout.tiles[at]!);
  painter.marksAndLinks();
}

/** Draws around each visible cluster that has changed, on a canvas that is clear else. */
export function drawChanges(
  canvas: CanvasRenderingContext2D,
  layout: Layout,
  changed: ReadonlySet<string>,
  palette: Palette,
  view: { top: number; height: number; ratio: number },
): void {
  const { ratio } = view;
  canvas.setTransform(ratio, 0, 0, ratio, 0, 0);
  canvas.clearRect(0, 0, layout.width, view.height);
  canvas.translate(0, -view.top);
  canvas.strokeStyle = palette.colour("--changed");
  canvas.lineWidth = 3;
  canvas.beginPath();
  const [from, to] = visibleTiles(layout.tiles, view.top, view.top + view.height);
  for (const tile of layout.tiles.slice(from, to)) {
    if (changed.has(tile.cluster.name)) canvas.rect(tile.x, tile.y, tile.width, tile.height);
  }
  canvas.stroke();
}

/** Draws tiles with what is in them; outlines and arrows are drawn above. */
class Painter extends Brush {
  #tiles: Map<string, Tile> | null = null;

  constructor(
    canvas: CanvasRenderingContext2D,
    readonly layout: Layout,
    readonly scene: Scene,
    palette: Palette,
  ) {
    super(canvas, palette);
  }

  title({ group, y, width }: Layout["titles"][number]): void {
    const [text, muted] = [this.palette.colour("--text"), this.palette.colour("--muted")];
    const end = this.text(group.title, 0, y + 15, width * 0.7, text, 600, 14) + 10;
    this.text(group.told, end, y + 16, width - end, muted, 400, 12);
    if (group.models) this.text(group.models, 0, y + 35, width, muted, 400, 12);
  }

  tile(tile: Tile): void {
    const { layout, scene } = this;
    const { cluster } = tile;
    const dim = scene.found !== null && !scene.found(cluster, null);
    this.alpha = dim ? 0.22 : 1;
    if (layout.zoom.detail === "cell") {
      this.box(tile, scene.colours.cell(cluster));
    } else {
      this.fill("tile", tile, "--tile");
      if (layout.lengths.head) this.head(tile);
      this.gpus(tile, dim);
    }
    this.alpha = 1;
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
    const end = this.name(cluster.name, x, y, width, zoom.detail === "labels" ? 14 : 12);
    const models = [...new Set(cluster.gpus.map((gpu) => gpu.model))];
    const many = `${cluster.gpus.length + cluster.omitted} × `;
    const told = models.length ? many + models.join(", ") : "";
    const left = x + width - end - 12;
    if (told && told.length * 6.5 < left) {
      this.text(told, x + width, y, left, this.palette.colour("--muted"), 400, 11, "right");
    }
    if (!cluster.gpus.length) {
      const below = tile.y + lengths.pad + lengths.head + 6;
      this.text("no GPU is known", x, below, width, this.palette.colour("--muted"), 400, 11);
    }
  }

  gpus(tile: Tile, dim: boolean): void {
    const { layout, scene } = this;
    const labels = layout.zoom.detail === "labels";
    const tiny = layout.gpu < TINY;
    for (let number = 0; number < tile.cluster.gpus.length; number += 1) {
      const gpu = tile.cluster.gpus[number]!;
      const rect = gpuRect(layout, tile, number);
      const { slices, memory } = gpu.layout;
      if (!slices.length) this.box(rect, { colour: null, pattern: "none" });
      else this.fill("gpu", rect, "--gap");
      let [last, run]: [Fill | null, Rect | null] = [null, null];
      for (let at = 0; at < slices.length; at += 1) {
        const slice = slices[at]!;
        const workload = gpu.workloads[at] ?? null;
        const fill = scene.colours.slice(tile.cluster, gpu, at);
        const box = sliceRect(rect, memory, slice);
        if (scene.found && !dim) this.alpha = scene.found(tile.cluster, workload ?? "") ? 1 : 0.3;
        if (!tiny) this.box(box, fill);
        else if (run && last?.colour === fill.colour) run.width = box.x + box.width - run.x;
        else {
          if (run && last) this.#run(run, last);
          [last, run] = [fill, { ...box }];
        }
        if (workload !== null && typeof fill.colour === "number") this.inUse(box, fill);
        if (!labels) continue;
        this.compute(box, slice.compute, fill);
        this.label(box, slice.device, workload, fill);
      }
      if (run && last) this.#run(run, last);
      if (!dim) this.alpha = 1;
    }
  }

  /** Slices side by side whose fill is the same, where they are too small to be told apart. */
  #run(run: Rect, { colour }: Fill): void {
    if (colour !== null) this.fill("slice", run, colour);
  }

  /** A dot in a slice in use, where the colour tells something else. */
  inUse(box: Rect, fill: Fill): void {
    const size = Math.max(2, Math.round(box.height / 4));
    const at = (from: number, length: number) => from + Math.round((length - size) / 2);
    const dot = { x: at(box.x, box.width), y: at(box.y, box.height), width: size, height: size };
    this.add("mark", dot, this.ink(fill));
  }

  /** Compute slices: one square each. */
  compute(box: Rect, slices: number, fill: Fill): void {
    const size = box.height > 24 ? 4 : 2;
    const step = Math.min(size * 2, (box.width - 4) / Math.max(1, slices));
    if (step < size + 1) return;
    const y = box.y + box.height - size - 3;
    for (let at = 0; at < slices; at += 1) {
      const x = Math.round(box.x + 4 + at * step);
      this.add("mark", { x, y, width: size, height: size }, this.ink(fill));
    }
  }

  label(box: Rect, device: string, workload: string | null, fill: Fill): void {
    const named = device === "all" ? "whole GPU" : device;
    const text = workload === null ? named : workload || "others";
    const width = box.width - 9;
    const line = (text: string, y: number, weight: number, size: number) => {
      const end = this.text(text, box.x + 5, y, width, this.ink(fill), weight, size);
      // Letters are hard to read on a pattern.
      if (fill.colour === null || fill.pattern === "none" || end === box.x + 5) return;
      const back = { x: box.x + 2, y: y - 8, width: end - box.x + 1, height: 16 };
      this.fill("backing", back, fill.colour);
    };
    line(text, box.y + 11, workload ? 600 : 400, 12);
    if (workload !== null && box.height > 46) line(named, box.y + 27, 400, 11);
  }

  outlines(tile: Tile): void {
    const { scene } = this;
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
