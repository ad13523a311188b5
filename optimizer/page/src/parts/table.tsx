import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

export interface TableRow {
  key: string;
  /** The first cell names the row. */
  cells: ComponentChildren[];
  /** Shown bold. */
  changed?: boolean;
  /** A class that highlights it once. */
  fresh?: string;
}

/** A table with a caption and a heading for each column. */
export function Table(props: { caption: string; heads: string[]; rows: TableRow[] }) {
  const box = useRef<HTMLDivElement>(null);
  const [scrolls, setScrolls] = useState(false);
  useLayoutEffect(() => setScrolls(box.current!.scrollWidth > box.current!.clientWidth));
  return (
    // What is wider than its place is scrolled by the keyboard, too.
    <div class="table" ref={box} tabIndex={scrolls ? 0 : undefined}>
      <table>
        <caption>{props.caption}</caption>
        <thead>
          <tr>
            {props.heads.map((head) => (
              <th key={head} scope="col">
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {props.rows.map(({ key, cells: [name, ...others], changed, fresh = "" }) => (
            <tr key={key} class={(changed ? "changed" : "") + fresh}>
              <th scope="row">{name}</th>
              {others.map((cell, position) => (
                <td key={props.heads[position + 1]}>{cell}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
