import { visible } from "../parts/visible-text";
import type { Colour, Pattern } from "./drawing-colours";

/** The colours and fonts of the style sheet, as a canvas takes them. */
export interface Palette {
  colour(colour: Colour): string;
  /** Black or white, whichever reads better on it. */
  ink(colour: Colour): string;
  family: string;
}

/** Colours that the scale has. */
const STEPS = 64;

const SCALE = ["--scale-0", "--scale-1", "--scale-2"];

/** Reads the colours that hold for an element; `probe` is a child of it that nobody sees. */
export function paletteOf(probe: HTMLElement): Palette {
  const channels = new Map<Colour, number[]>();
  const texts = new Map<Colour, string>();
  const read = (name: string): number[] => {
    probe.style.color = `var(${name})`;
    return (getComputedStyle(probe).color.match(/[\d.]+/g) ?? []).slice(0, 3).map(Number);
  };
  const step = (colour: Colour) =>
    typeof colour === "number" ? Math.round(colour * STEPS) / STEPS : colour;
  const rgb = (colour: Colour): number[] => {
    const key = step(colour);
    const known = channels.get(key);
    if (known) return known;
    const found = typeof key === "string" ? read(key) : between(SCALE.map(rgb), key);
    channels.set(key, found);
    return found;
  };
  const { fontFamily } = getComputedStyle(probe);
  return {
    colour(colour) {
      const key = step(colour);
      const text = texts.get(key) ?? `rgb(${rgb(key).join(" ")})`;
      texts.set(key, text);
      return text;
    },
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

/** Letters of a cut text that say nothing without more of them. */
const LETTERS = 3;

/** Texts that were measured, by font and width: measuring is what a frame spends most on. */
const measured = new Map<string, { text: string; width: number }>();

/** As much of a text as fits, cut in its middle, and its width. */
export function fitted(
  canvas: CanvasRenderingContext2D,
  font: string,
  text: string,
  width: number,
) {
  const key = `${font} ${Math.round(width)} ${text}`;
  const known = measured.get(key);
  if (known) return known;
  canvas.font = font;
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

/** A pattern in the colour of an ink. */
export function patternOf(
  canvas: CanvasRenderingContext2D,
  pattern: Pattern,
  ink: string,
): CanvasPattern {
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
  if (pattern === "lines" || pattern === "crossed") {
    pen.lineWidth = 1.4;
    for (const from of [-6, 0, 6]) {
      pen.moveTo(from, 6);
      pen.lineTo(from + 6, 0);
      if (pattern === "lines") continue;
      pen.moveTo(from, 0);
      pen.lineTo(from + 6, 6);
    }
    pen.stroke();
  }
  const made = canvas.createPattern(tile, "repeat")!;
  patterns.set(key, made);
  return made;
}
