import type { DrawnCluster } from "./drawn-fleet";

/** Clusters that are drawn together, under a title if there is one. */
export interface DrawnGroup {
  title: string;
  told: string;
  /** Of each GPU model, on a line of its own. */
  models?: string;
  clusters: DrawnCluster[];
}

/** What is drawn of a cluster: one cell, its GPUs, its name besides, and what its slices run. */
export type Detail = "cell" | "gpus" | "names" | "labels";

/** How large things are drawn: the width of a cell, or of a GPU, in CSS pixels. */
export interface Zoom {
  detail: Detail;
  width: number;
}

const zooms = (detail: Detail, ...widths: number[]): Zoom[] =>
  widths.map((width) => ({ detail, width }));

/** From far to near. */
export const ZOOMS: Zoom[] = [
  ...zooms("cell", 4, 5, 7, 9, 12, 16, 22),
  ...zooms("gpus", 16, 20, 26, 34, 44, 54),
  ...zooms("names", 64, 72, 80, 90, 104, 120, 140),
  ...zooms("labels", 170, 210, 260, 320, 400),
];

/** Lengths in CSS pixels; `gpu` is the height of a GPU, `between` the distance of two GPUs. */
export interface Lengths {
  gap: number;
  pad: number;
  head: number;
  between: number;
  gpu: number;
}

const LENGTHS: Record<Detail, (width: number) => Lengths> = {
  cell: (width) => ({ gap: width > 7 ? 2 : 1, pad: 0, head: 0, between: 0, gpu: width }),
  gpus: (width) => ({ gap: 4, pad: 2, head: 0, between: 1, gpu: Math.round(2 + width * 0.14) }),
  names: (width) => ({ gap: 8, pad: 7, head: 28, between: 4, gpu: Math.round(2 + width * 0.13) }),
  labels: (width) => ({ gap: 12, pad: 10, head: 26, between: 6, gpu: Math.round(18 + width / 10) }),
};

/** Height of a group's title, and of its line about GPU models. */
const [TITLE, MODELS] = [30, 18];

/** Columns of GPUs that a tile has at most; it is as wide as the drawing otherwise. */
const MAX_COLUMNS = 8;

/** How much wider than asked for things may become, so that a single line fills the drawing. */
const STRETCH = 1.5;

export interface Rect {
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface Tile extends Rect {
  cluster: DrawnCluster;
  columns: number;
}

export interface Title extends Rect {
  group: DrawnGroup;
}

export interface Layout {
  zoom: Zoom;
  lengths: Lengths;
  /** Width of a GPU, or of a cell. */
  gpu: number;
  tiles: Tile[];
  titles: Title[];
  width: number;
  height: number;
}

/** Lays clusters out in lines as wide as the drawing, on a grid of columns as wide as a GPU. */
export function layOut(groups: DrawnGroup[], width: number, zoom: Zoom): Layout {
  const lengths = LENGTHS[zoom.detail](zoom.width);
  const { gap, pad, head, between } = lengths;
  const cell = zoom.detail === "cell";
  const pitch = zoom.width + 2 * pad + gap;
  const rows = rowsOf(groups);
  const wanted = (cluster: DrawnCluster) =>
    cell ? 1 : Math.min(MAX_COLUMNS, Math.max(1, Math.ceil(cluster.gpus.length / rows)));
  const all = groups.map((group) => group.clusters.reduce((sum, one) => sum + wanted(one), 0));
  const fitting = Math.max(1, Math.floor((width + gap) / pitch));
  const needed = Math.max(1, ...all);
  const most = inWholeTiles(Math.min(fitting, needed), groups, wanted);
  const column = Math.floor(
    Math.min((width + gap) / most, pitch * (needed < fitting ? STRETCH : 2)),
  );
  const tiles: Tile[] = [];
  const titles: Title[] = [];
  let y = 0;
  for (const group of groups) {
    if (group.title) {
      const height = TITLE + (group.models ? MODELS : 0);
      titles.push({ group, x: 0, y, width, height });
      y += height;
    }
    let [x, first] = [0, tiles.length];
    const endLine = () => {
      const line = tiles.slice(first);
      const height = Math.max(0, ...line.map((tile) => tile.height));
      for (const tile of line) tile.height = height;
      y += line.length ? height + gap : 0;
      [x, first] = [0, tiles.length];
    };
    for (const cluster of group.clusters) {
      const columns = Math.min(most, wanted(cluster));
      if (x + columns > most) endLine();
      const lines = Math.max(1, Math.ceil(cluster.gpus.length / columns));
      const height = cell
        ? column - gap
        : 2 * pad + head + lines * (lengths.gpu + between) - between;
      tiles.push({ cluster, columns, x: x * column, y, width: columns * column - gap, height });
      x += columns;
    }
    endLine();
  }
  return {
    zoom,
    lengths,
    gpu: column - gap - 2 * pad,
    tiles,
    titles,
    width,
    height: Math.max(0, y - gap),
  };
}

/** Columns of a line, where all tiles are as wide as the others, so that they fill it. */
function inWholeTiles(
  columns: number,
  groups: DrawnGroup[],
  wanted: (cluster: DrawnCluster) => number,
): number {
  const widths = new Set(groups.flatMap((group) => group.clusters.map(wanted)));
  const [width = 1] = widths;
  return widths.size === 1 && columns > width ? columns - (columns % width) : columns;
}

/** Lines of GPUs in a tile: as many as make the tile of a typical cluster about square. */
function rowsOf(groups: DrawnGroup[]): number {
  const counts = groups.flatMap((group) => group.clusters.map((one) => one.gpus.length));
  const known = counts.filter(Boolean).sort((one, other) => one - other);
  const typical = known[known.length >> 1] ?? 1;
  return typical <= 4 ? typical : Math.min(12, Math.max(4, Math.round(Math.sqrt(2 * typical))));
}

/** The nearest zoom at which the whole fleet is visible; the farthest one if it never is. */
export function fitting(groups: DrawnGroup[], width: number, height: number): number {
  let [low, high] = [0, ZOOMS.length - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (layOut(groups, width, ZOOMS[middle]!).height <= height) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** Positions of the tiles between two heights: from, and up to but not including. */
export function visibleTiles(tiles: Tile[], top: number, bottom: number): [number, number] {
  const first = (reached: (tile: Tile) => boolean) => {
    let [low, high] = [0, tiles.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (reached(tiles[middle]!)) high = middle;
      else low = middle + 1;
    }
    return low;
  };
  return [first((tile) => tile.y + tile.height > top), first((tile) => tile.y >= bottom)];
}

/** Where a GPU of a tile lies. */
export function gpuRect(layout: Layout, tile: Tile, gpu: number): Rect {
  const { pad, head, between, gpu: height } = layout.lengths;
  const width = (tile.width - 2 * pad - (tile.columns - 1) * between) / tile.columns;
  return {
    x: Math.round(tile.x + pad + (gpu % tile.columns) * (width + between)),
    y: tile.y + pad + head + Math.floor(gpu / tile.columns) * (height + between),
    width: Math.round(width),
    height,
  };
}

/** Where a slice of a GPU lies: memory slices run from left to right. */
export function sliceRect(gpu: Rect, memory: number, slice: { start: number; memory: number }) {
  const at = (slot: number) => Math.round((gpu.width * slot) / Math.max(1, memory));
  const [from, to] = [at(slice.start), at(slice.start + slice.memory)];
  const gap = to - from > 3 ? 1 : 0;
  return { x: gpu.x + from, y: gpu.y, width: to - from - gap, height: gpu.height };
}

/** A place in the drawing: a cluster, and perhaps one of its GPUs and a slice of that. */
export interface Spot {
  tile: Tile;
  gpu: number | null;
  slice: number | null;
}

/** What is drawn at a point. */
export function spotAt(layout: Layout, x: number, y: number): Spot | null {
  const [from, to] = visibleTiles(layout.tiles, y, y + 1);
  const tile = layout.tiles
    .slice(from, to)
    .find((one) => x >= one.x && x < one.x + one.width && y < one.y + one.height);
  if (!tile) return null;
  const inside = (rect: Rect) =>
    x >= rect.x && x <= rect.x + rect.width && y >= rect.y && y <= rect.y + rect.height;
  if (layout.zoom.detail === "cell") return { tile, gpu: null, slice: null };
  for (const [gpu, { layout: divided }] of tile.cluster.gpus.entries()) {
    const rect = gpuRect(layout, tile, gpu);
    if (!inside(rect)) continue;
    const slice = divided.slices.findIndex((one) => inside(sliceRect(rect, divided.memory, one)));
    return { tile, gpu, slice: slice < 0 ? null : slice };
  }
  return { tile, gpu: null, slice: null };
}
