import { useEffect, useState } from "preact/hooks";

/**
 * What the page shows, as the address holds it: `#VIEW?name=value&…`. A link shows a colleague the same, and
 * the back button works. Each part has a name of its own: `view`, `cluster`, `score`, `app`, `plan` …
 */
let state = read();

/** The address that was written last, so that the event of writing it changes nothing. */
let written = location.hash;

/** Milliseconds that changes which leave no trace in the history are gathered: browsers limit writes. */
const GATHER = 250;

let gathering: ReturnType<typeof setTimeout> | undefined;
const readers = new Set<() => void>();

addEventListener("hashchange", () => {
  if (location.hash === written) return;
  clearTimeout(gathering);
  gathering = undefined;
  written = location.hash;
  state = read();
  readers.forEach((tell) => tell());
});

function read(): URLSearchParams {
  const [view = "", query = ""] = location.hash.slice(1).split(/\?(.*)/s);
  const found = new URLSearchParams(query);
  found.set("view", view);
  return found;
}

function write(replace: boolean): void {
  clearTimeout(gathering);
  gathering = undefined;
  const hash = addressOf({});
  if (hash === location.hash) return;
  // Not by history.pushState: the frame of a chat has no origin, so it may not.
  if (replace) location.replace(new URL(hash, location.href));
  else location.hash = hash;
  written = location.hash;
}

/** The address of the state with some parts changed. */
export function addressOf(changes: Record<string, string>): string {
  const { view = "", ...others } = { ...Object.fromEntries(state), ...changes };
  const query = new URLSearchParams(Object.entries(others).filter(([, value]) => value)).toString();
  // A bare `#` would scroll to the top.
  return `#${view}${query || !view ? `?${query}` : ""}`;
}

/**
 * Changes parts of the state; an empty value removes one. `replace` leaves no step for the back button: for
 * what changes while somebody drags, zooms or types.
 */
export function go(changes: Record<string, string>, replace = false): void {
  if (!replace && gathering !== undefined) write(true);
  for (const [name, value] of Object.entries(changes)) {
    if (value) state.set(name, value);
    else state.delete(name);
  }
  if (replace) gathering ??= setTimeout(() => write(true), GATHER);
  else write(false);
  readers.forEach((tell) => tell());
}

/** A part of the state, `fallback` where the address does not have it, and what changes it. */
export function useAddress(
  name: string,
  fallback = "",
): [string, (value: string, replace?: boolean) => void] {
  const [, draw] = useState({});
  useEffect(() => {
    const tell = () => draw({});
    readers.add(tell);
    return () => void readers.delete(tell);
  }, []);
  return [
    state.get(name) || fallback,
    (value, replace) => go({ [name]: value === fallback ? "" : value }, replace),
  ];
}
