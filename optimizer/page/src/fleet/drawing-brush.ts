import type { Colour, Fill } from "./drawing-colours";
import type { Rect } from "./drawing-layout";
import { fitted, type Palette, patternOf } from "./drawing-palette";

/** Shares of the scale that only an outline tells from the surface. */
const FAINT = 0.35;

/** What covers what: tiles, then GPUs, and so on. */
const LAYERS = ["tile", "gpu", "slice", "inside", "pattern", "backing", "mark"] as const;
type Layer = (typeof LAYERS)[number];

interface Text {
  text: string;
  x: number;
  y: number;
  font: string;
  colour: string;
  align: CanvasTextAlign;
  alpha: number;
}

/** Rectangles of one colour. Changing the colour of a canvas costs more than a rectangle. */
interface Batch {
  style: string | CanvasPattern;
  alpha: number;
  rects: number[];
}

/** What gathers rectangles by layer and colour, and texts; lines are drawn at once. */
export class Brush {
  #texts: Text[] = [];
  protected alpha = 1;
  readonly #layers = Object.fromEntries(
    LAYERS.map((layer) => [layer, new Map<string | CanvasPattern, Batch[]>()]),
  ) as Record<Layer, Map<string | CanvasPattern, Batch[]>>;

  constructor(
    readonly canvas: CanvasRenderingContext2D,
    readonly palette: Palette,
  ) {
    canvas.textBaseline = "middle";
  }

  flush(): void {
    const { canvas } = this;
    for (const layer of LAYERS) {
      for (const { style, alpha, rects } of [...this.#layers[layer].values()].flat()) {
        canvas.fillStyle = style;
        canvas.globalAlpha = alpha;
        for (let at = 0; at < rects.length; at += 4) {
          canvas.fillRect(rects[at]!, rects[at + 1]!, rects[at + 2]!, rects[at + 3]!);
        }
      }
    }
    for (const { text, x, y, font, colour, align, alpha } of this.#texts) {
      canvas.globalAlpha = alpha;
      canvas.font = font;
      canvas.fillStyle = colour;
      canvas.textAlign = align;
      canvas.fillText(text, x, y);
    }
    canvas.globalAlpha = 1;
  }

  /** Fills a rectangle with a colour or a pattern. */
  add(layer: Layer, { x, y, width, height }: Rect, style: string | CanvasPattern): void {
    const batches = this.#layers[layer];
    let found = batches.get(style);
    if (!found) batches.set(style, (found = []));
    let batch = found.find((one) => one.alpha === this.alpha);
    if (!batch) found.push((batch = { style, alpha: this.alpha, rects: [] }));
    batch.rects.push(x, y, width, height);
  }

  /** A filled box with its pattern, or an empty one with an outline. */
  box(box: Rect, { colour, pattern }: Fill): void {
    const { x, y, width, height } = box;
    const faint = typeof colour === "number" && colour < FAINT;
    if (colour === null || faint) {
      this.fill("slice", box, "--outline");
      const inside = { x: x + 1, y: y + 1, width: width - 2, height: height - 2 };
      if (width > 2 && height > 2) this.fill("inside", inside, colour ?? "--tile");
    } else {
      this.fill("slice", box, colour);
    }
    if (pattern === "none" || width < 5 || height < 4) return;
    const ink = colour === null ? this.palette.colour("--outline") : this.palette.ink(colour);
    this.add("pattern", box, patternOf(this.canvas, pattern, ink));
  }

  fill(layer: Layer, rect: Rect, colour: Colour): void {
    this.add(layer, rect, this.palette.colour(colour));
  }

  outline({ x, y, width, height }: Rect, colour: string, thick: number): void {
    this.canvas.strokeStyle = this.palette.colour(colour);
    this.canvas.lineWidth = thick;
    const inset = thick === 1 ? 0.5 : 0;
    this.canvas.strokeRect(x + inset, y + inset, width - 2 * inset, height - 2 * inset);
  }

  ink({ colour }: Fill): string {
    return colour === null ? this.palette.colour("--muted") : this.palette.ink(colour);
  }

  /** Writes a text, cut in its middle to the width. Returns where it ends. */
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
    const font = `${weight} ${size}px ${this.palette.family}`;
    const cut = fitted(this.canvas, font, text, width);
    if (cut.text) this.#texts.push({ ...cut, x, y, font, colour, align, alpha: this.alpha });
    return x + cut.width;
  }

  /** Writes a name, in two lines if it is too long for one. Returns where it ends. */
  name(name: string, x: number, y: number, width: number, size: number): number {
    const font = `600 ${size}px ${this.palette.family}`;
    const colour = this.palette.colour("--text");
    const [first, rest] =
      fitted(this.canvas, font, name, width).text === name ? [name, ""] : inTwo(name);
    if (!rest) return this.text(first, x, y, width, colour, 600, size);
    this.text(first, x, y - size / 2, width, colour, 600, size - 1);
    this.text(rest, x, y + size / 2, width, colour, 600, size - 1);
    return x + width;
  }
}

/** A name cut behind the separator that is nearest to its middle. */
function inTwo(name: string): [string, string] {
  const ends = [...name.matchAll(/[-.]/g)].map(({ index }) => index + 1);
  const off = (end: number) => Math.abs(end - name.length / 2);
  const end = ends.sort((one, other) => off(one) - off(other))[0] ?? name.length;
  return [name.slice(0, end), name.slice(end)];
}
