import type { RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { Layout, Spot } from "./drawing-layout";

/** Pixels of a wheel, and the ratio of a pinch, that are one step of the zoom. */
const [WHEEL, PINCH] = [60, 1.25];

/** The focused cluster, and its slice, counted over all of its GPUs. */
export function spotOf(layout: Layout, at: { cluster: string; slice: number }): Spot | null {
  const tile = layout.tiles.find((one) => one.cluster.name === at.cluster);
  if (!tile) return null;
  let left = at.slice;
  for (const [gpu, { layout: divided }] of tile.cluster.gpus.entries()) {
    if (left >= 0 && left < divided.slices.length) return { tile, gpu, slice: left };
    left -= divided.slices.length;
  }
  return { tile, gpu: null, slice: null };
}

/** The first cluster; null: there is none. */
export function first(layout: Layout): { cluster: string; slice: number } | null {
  const [tile] = layout.tiles;
  return tile ? { cluster: tile.cluster.name, slice: -1 } : null;
}

/** Where a key leads from a tile; null: nowhere. */
export function nextTile(layout: Layout, at: number, key: string, height: number): number | null {
  const { tiles } = layout;
  const last = tiles.length - 1;
  const here = tiles[at];
  if (key === "Home") return 0;
  if (key === "End") return last;
  if (!here) return key.startsWith("Arrow") && last >= 0 ? 0 : null;
  if (key === "ArrowRight") return Math.min(last, at + 1);
  if (key === "ArrowLeft") return Math.max(0, at - 1);
  const far = { ArrowDown: 1, PageDown: height, ArrowUp: -1, PageUp: -height }[key];
  if (!far) return null;
  const middle = here.x + here.width / 2;
  const beyond = tiles.filter((one) =>
    far > 0
      ? one.y >= here.y + Math.max(here.height, far) - 1
      : one.y + one.height <= here.y + 1 + Math.min(0, far + here.height),
  );
  const line = far > 0 ? beyond[0]?.y : beyond.at(-1)?.y;
  const near = beyond.filter((one) => one.y === line);
  const off = (tile: (typeof tiles)[number]) => Math.abs(tile.x + tile.width / 2 - middle);
  const best = near.reduce((one, other) => (off(other) < off(one) ? other : one), near[0] ?? here);
  return beyond.length ? tiles.indexOf(best) : far > 0 ? last : 0;
}

/** Steps of zoom by Ctrl and the wheel, which a pinch on a touchpad is, too, and by two fingers. */
export function useGestures(
  box: RefObject<HTMLElement | null>,
  onZoom: (steps: number, at: { x: number; y: number }) => void,
): void {
  const zoom = useRef(onZoom);
  zoom.current = onZoom;
  useEffect(() => {
    const element = box.current!;
    const stop = new AbortController();
    const options = { passive: false, signal: stop.signal };
    let turned = 0;
    let apart = 0;
    const inside = (x: number, y: number) => {
      const { left, top } = element.getBoundingClientRect();
      return { x: x - left, y: y - top };
    };
    const onWheel = (event: WheelEvent) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      turned -= event.deltaY;
      const steps = Math.trunc(turned / WHEEL);
      turned -= steps * WHEEL;
      if (steps) zoom.current(steps, inside(event.clientX, event.clientY));
    };
    const onTouch = (event: TouchEvent) => {
      const [one, other] = event.touches;
      if (!one || !other) return;
      event.preventDefault();
      const now = Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY);
      const middle = inside((one.clientX + other.clientX) / 2, (one.clientY + other.clientY) / 2);
      if (event.type === "touchstart") apart = now;
      else if (now > apart * PINCH) zoom.current(1, middle);
      else if (now < apart / PINCH) zoom.current(-1, middle);
      else return;
      apart = now;
    };
    element.addEventListener("wheel", onWheel, options);
    element.addEventListener("touchstart", onTouch, options);
    element.addEventListener("touchmove", onTouch, options);
    return () => stop.abort();
  }, []);
}
