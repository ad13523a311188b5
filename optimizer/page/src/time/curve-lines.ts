import { duration } from "../parts/times";

/** A position, such as Unix seconds, and a value; null: there is none, so the line is broken. */
export type Point = [number, number | null];

/** A line, and the edges of a band around it. */
export interface Line {
  name: string;
  points: Point[];
  low?: Point[];
  high?: Point[];
  lowName?: string;
  highName?: string;
}

export type Column = (number | null | undefined)[];

/** The lines over one axis: an undefined value is no point of its line, a null breaks it. */
export interface Aligned {
  at: number[];
  lines: { middle: Column; low: Column; high: Column }[];
}

/** Puts lines on the positions of all of them, in order whatever the order of their points. */
export function aligned(lines: Line[]): Aligned {
  const every = lines.flatMap((line) => [line.points, line.low ?? [], line.high ?? []].flat());
  const at = [...new Set(every.map(([position]) => position))].sort((one, two) => one - two);
  const column = (points: Point[] = []): Column => {
    const values = new Map(points);
    return broken(at.map((position) => values.get(position)));
  };
  return {
    at,
    lines: lines.map((line) => ({
      middle: column(line.points),
      low: column(line.low),
      high: column(line.high),
    })),
  };
}

/** Makes nulls of all positions between two values of a line if one of them is null. */
function broken(column: Column): Column {
  let gap: number[] = [];
  const found = [...column];
  column.forEach((value, at) => {
    if (value === null || value === undefined) gap.push(at);
    else {
      if (gap.some((one) => column[one] === null)) gap.forEach((one) => (found[one] = null));
      gap = [];
    }
  });
  return found;
}

/** The last value of points; null: there is none. */
export function latest(points: Point[] | undefined): number | null {
  return points?.findLast(([, value]) => value !== null)?.[1] ?? null;
}

/** What lines show, in a sentence for who does not see them. */
export function summary(label: string, lines: Line[], say: (value: number) => string): string {
  const values = lines
    .flatMap((line) => line.points.map(([, value]) => value))
    .filter((value) => value !== null);
  if (values.length === 0) return `${label}: no values.`;
  const low = values.reduce((one, two) => Math.min(one, two));
  const high = values.reduce((one, two) => Math.max(one, two));
  const last = lines.length === 1 ? `, last ${say(latest(lines[0]!.points)!)}` : "";
  return `${label}: ${say(low)} to ${say(high)}${last}.`;
}

/** Positions of points that have no neighbour to be connected with: they are drawn as dots. */
export function isolated(column: Column): number[] {
  const known = column.flatMap((value, at) => (value === undefined ? [] : [at]));
  return known.filter((at, order) => {
    const beside = [known[order - 1], known[order + 1]];
    return (
      column[at] !== null && beside.every((other) => other === undefined || column[other] === null)
    );
  });
}

const DAY = 86_400;
const CLOCK = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const DATE = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });

/** `14:05`, or `27 Nov` where a day begins or days are counted; in the reader's time zone. */
export function tick(seconds: number, step: number): string {
  const date = new Date(seconds * 1000);
  const midnight = date.getHours() === 0 && date.getMinutes() === 0;
  return step >= DAY || midnight ? DATE.format(date) : CLOCK.format(date);
}

/** `27 Nov 14:05`. */
export function moment(seconds: number): string {
  const date = new Date(seconds * 1000);
  return `${DATE.format(date)} ${CLOCK.format(date)}`;
}

/** Seconds in words; a negative age is that of a clock which is ahead. */
export function age(seconds: number): string {
  return seconds < 0 ? `${duration(seconds)} ahead` : duration(seconds);
}
