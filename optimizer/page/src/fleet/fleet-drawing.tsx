import type { ComponentChildren, RefObject } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { draw, drawChanges } from "./drawing-canvas";
import type { Colours } from "./drawing-colours";
import { type Detail, type DrawnGroup, type Layout, type Spot, ZOOMS } from "./drawing-layout";
import { fitting, layOut, spotAt, visibleTiles } from "./drawing-layout";
import { first, nextTile, spotOf, useGestures } from "./drawing-navigation";
import { type Palette, paletteOf } from "./drawing-palette";
import type { Link, Mark, Scene } from "./drawing-scene";
import "./drawing.css";
import { useSize } from "../parts/use-size";
import { SpotTold } from "./spot-told";

/** What a caller may ask of a drawing. */
export interface DrawingHandle {
  /** The whole drawing, also what is scrolled out of sight. */
  png(): Promise<Blob>;
}

interface Props {
  /** What is drawn, for assistive technology. */
  label: string;
  groups: DrawnGroup[];
  colours: Colours;
  /** Clusters that are highlighted once: another set, another highlight. */
  changed?: ReadonlySet<string>;
  found?: Scene["found"];
  marks?: Mark[];
  links?: Link[];
  handle?: RefObject<DrawingHandle | null>;
  /** Explains the colours of what is drawn, beside the buttons of the zoom. */
  legend?: (detail: Detail) => ComponentChildren;
  onOpen: (cluster: string) => void;
}

const NONE: ReadonlySet<string> = new Set();

/** Milliseconds in which the highlight of a change fades. */
const FADE = 2500;

/** Height of the drawing as a share of the window's, and at least in CSS pixels. */
const [SHARE, LEAST] = [0.66, 280];

/** Pixels of a canvas in each direction that browsers are sure to draw. */
const MAX_PIXELS = 16_000;

/**
 * Clusters with their GPUs and slices on a canvas, as large as somebody wants. The drawing is as wide as its
 * place, and scrolls up and down. Ctrl and the wheel, a pinch, and the keys + and - zoom.
 */
export function FleetDrawing(props: Props) {
  const { groups, colours, found = null, changed = NONE, onOpen } = props;
  const [box, width] = useSize<HTMLDivElement>();
  const canvas = useRef<HTMLCanvasElement>(null);
  const lit = useRef<HTMLCanvasElement>(null);
  const probe = useRef<HTMLSpanElement>(null);
  const [chosen, setChosen] = useState<number | null>(null);
  const [hovered, setHovered] = useState<{ spot: Spot; x: number; y: number } | null>(null);
  const [focused, setFocused] = useState<{ cluster: string; slice: number } | null>(null);
  const [palette, setPalette] = useState<Palette | null>(null);
  const anchor = useRef<{ cluster: string; offset: number } | null>(null);

  const most = useMemo(() => Math.max(LEAST, Math.floor(innerHeight * SHARE)), [width]);
  const fits = useMemo(() => fitting(groups, width, most), [groups, width, most]);
  const zoom = chosen ?? fits;
  const layout = useMemo(() => layOut(groups, width, ZOOMS[zoom]!), [groups, width, zoom]);
  const height = Math.min(most, Math.max(layout.height, 60));

  useLayoutEffect(() => {
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    const recolour = () => setPalette(paletteOf(probe.current!));
    scheme.addEventListener("change", recolour);
    recolour();
    return () => scheme.removeEventListener("change", recolour);
  }, []);

  const spot = focused && spotOf(layout, focused);
  const scene: Scene = {
    ...{ colours, found },
    ...{ marks: props.marks ?? [], links: props.links ?? [] },
    ...{ hovered: hovered?.spot ?? null, focused: spot },
  };
  const paint = useRef(() => {});
  paint.current = () => {
    const [element, over, frame] = [canvas.current, lit.current, box.current];
    if (!element || !over || !frame || !palette || !width) return;
    const view = { top: frame.scrollTop, height, ratio: devicePixelRatio };
    draw(sized(element, width, height, view.ratio), layout, scene, palette, view);
    if (over.getAnimations().length === 0) return;
    drawChanges(sized(over, width, height, view.ratio, true), layout, changed, palette, view);
  };
  // The browser fades a canvas that is drawn once; a large fleet is not drawn again in each frame.
  useLayoutEffect(() => {
    if (!changed.size) return;
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const easing = still ? "steps(1, end)" : "ease-in";
    lit.current!.animate([{ opacity: 1 }, { opacity: 0 }], { duration: FADE, easing });
  }, [changed]);

  useEffect(() => {
    const element = document.documentElement;
    // Paper is white, and has what is scrolled out of sight.
    const onPrint = () => {
      element.style.colorScheme = "light";
      const all = Math.min(layout.height, Math.floor(MAX_PIXELS / 2));
      const pen = sized(canvas.current!, width, all, 2);
      const still = { ...scene, hovered: null, focused: null };
      draw(pen, layout, still, paletteOf(probe.current!), { top: 0, height: all, ratio: 2 });
    };
    const onPrinted = () => {
      element.style.colorScheme = "";
      paint.current();
    };
    addEventListener("beforeprint", onPrint);
    addEventListener("afterprint", onPrinted);
    return () => {
      removeEventListener("beforeprint", onPrint);
      removeEventListener("afterprint", onPrinted);
    };
  });

  const asked = useRef(0);
  const repaint = () => {
    cancelAnimationFrame(asked.current);
    asked.current = requestAnimationFrame(() => paint.current());
  };
  useLayoutEffect(() => {
    const kept = anchor.current;
    const tile = kept && layout.tiles.find((one) => one.cluster.name === kept.cluster);
    if (tile) box.current!.scrollTop = tile.y - kept.offset;
    anchor.current = null;
  }, [layout]);
  const over = hovered?.spot;
  useLayoutEffect(
    () => paint.current(),
    [
      ...[layout, palette, height, colours, found, changed, props.marks, props.links, focused],
      ...[over?.tile, over?.gpu, over?.slice],
    ],
  );

  const zoomTo = (next: number | null, at?: { x: number; y: number }) => {
    const to = next === null ? null : Math.min(ZOOMS.length - 1, Math.max(0, next));
    if (to === zoom && chosen !== null) return;
    const top = box.current!.scrollTop;
    const kept = at ? spotAt(layout, at.x, at.y + top)?.tile : undefined;
    const tile = kept ?? spot?.tile ?? layout.tiles[visibleTiles(layout.tiles, top, top + 1)[0]];
    if (tile) anchor.current = { cluster: tile.cluster.name, offset: tile.y - top };
    setHovered(null);
    setChosen(to);
  };
  useGestures(box, (steps, at) => zoomTo(zoom + steps, at));

  useEffect(() => {
    const { handle } = props;
    if (handle) handle.current = { png: () => whole(layout, scene, palette!) };
  });

  const point = (event: PointerEvent | MouseEvent) => {
    const { left, top } = canvas.current!.getBoundingClientRect();
    const [x, y] = [event.clientX - left, event.clientY - top];
    return { spot: spotAt(layout, x, y + box.current!.scrollTop), x, y };
  };
  const focusOn = (cluster: string | undefined, slice = -1) => {
    if (!cluster) return;
    setHovered(null);
    setFocused({ cluster, slice });
    const tile = layout.tiles.find((one) => one.cluster.name === cluster);
    if (tile) reveal(box.current!, tile.y, tile.height, height);
  };
  const onKey = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return; // the browser's own keys
    const at = focused ? layout.tiles.findIndex((one) => one === spot?.tile) : -1;
    const tile = layout.tiles[at];
    const next = nextTile(layout, at, event.key, height);
    if (event.key === "+" || event.key === "=") zoomTo(zoom + 1);
    else if (event.key === "-") zoomTo(zoom - 1);
    else if (event.key === "0") zoomTo(null);
    else if (event.key === "Enter" && tile) onOpen(tile.cluster.name);
    else if ((event.key === "." || event.key === ",") && tile) {
      const all = tile.cluster.gpus.reduce((sum, gpu) => sum + gpu.layout.slices.length, 0);
      const slice = (focused?.slice ?? -1) + (event.key === "." ? 1 : -1);
      focusOn(tile.cluster.name, Math.max(-1, Math.min(all - 1, slice)));
    } else if (next !== null) focusOn(layout.tiles[next]?.cluster.name);
    else return;
    event.preventDefault();
  };

  const told = hovered?.spot ?? spot;
  return (
    <div class="drawing">
      <div class="drawing-tools">
        {props.legend?.(layout.zoom.detail)}
        <span class="zoom" role="group" aria-label="Zoom">
          <button type="button" aria-label="Smaller" onClick={() => zoomTo(zoom - 1)}>
            −
          </button>
          <button type="button" disabled={chosen === null} onClick={() => zoomTo(null)}>
            Fit
          </button>
          <button type="button" aria-label="Larger" onClick={() => zoomTo(zoom + 1)}>
            +
          </button>
        </span>
      </div>
      <div class="drawing-place">
        <div
          class="drawing-box"
          ref={box}
          style={{ height: `${height}px` }}
          role="application"
          aria-roledescription="drawing"
          aria-label={`${props.label}. Arrow keys go from cluster to cluster, full stop and comma from slice to slice, Enter opens a cluster, plus and minus zoom.`}
          tabIndex={0}
          onScroll={repaint}
          onKeyDown={onKey}
          onFocus={() => focused ?? setFocused(first(layout))}
          onBlur={() => setFocused(null)}
          onPointerMove={(event) => {
            const { spot, x, y } = point(event);
            setHovered(spot && { spot, x, y });
          }}
          onPointerLeave={() => setHovered(null)}
          onClick={(event) => {
            const { spot } = point(event);
            if (spot) onOpen(spot.tile.cluster.name);
          }}
        >
          <span ref={probe} class="unseen" />
          <canvas ref={canvas} class={hovered ? "over" : ""} style={{ height: `${height}px` }} />
          <div style={{ height: `${Math.max(0, layout.height - height)}px` }} />
        </div>
        <canvas ref={lit} class="lit" style={{ width: `${width}px`, height: `${height}px` }} />
        {told && (
          <SpotTold
            spot={told}
            at={hovered ?? placeOf(told, box.current)}
            width={width}
            height={height}
          />
        )}
      </div>
    </div>
  );
}

function placeOf({ tile }: Spot, box: HTMLElement | null): { x: number; y: number } {
  return { x: tile.x + tile.width / 2, y: tile.y + tile.height - (box?.scrollTop ?? 0) };
}

function reveal(box: HTMLElement, top: number, size: number, height: number): void {
  if (top < box.scrollTop) box.scrollTop = top - 8;
  else if (top + size > box.scrollTop + height) box.scrollTop = top + size - height + 8;
}

/** A canvas of a size in CSS pixels, ready to draw. */
function sized(
  canvas: HTMLCanvasElement,
  width: number,
  height: number,
  ratio: number,
  alpha = false,
) {
  const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== wide) canvas.width = wide;
  if (canvas.height !== high) canvas.height = high;
  return canvas.getContext("2d", { alpha })!;
}

/** Draws everything on a canvas of its own, as sharp as browsers can. */
function whole(layout: Layout, scene: Scene, palette: Palette): Promise<Blob> {
  const canvas = document.createElement("canvas");
  const ratio = Math.min(2, MAX_PIXELS / Math.max(layout.width, layout.height));
  const pen = sized(canvas, layout.width, layout.height, ratio);
  const still = { ...scene, hovered: null, focused: null };
  draw(pen, layout, still, palette, { top: 0, height: layout.height, ratio });
  return new Promise((done, failed) =>
    canvas.toBlob((blob) => (blob ? done(blob) : failed(new Error("the drawing is too large")))),
  );
}
