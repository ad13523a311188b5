import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { problemOf } from "../api/optimizer-api";
import type { Problem } from "../api/wire";

/** A call to the optimizer: its answer or its problem, and whether it runs. */
export interface Call<T> {
  answer: T | null;
  problem: Problem | null;
  running: boolean;
}

/**
 * Returns the call's state, and what starts it. A new call keeps the old answer until it ends, and what
 * an older call answers after that is dropped.
 */
export function useCall<T>(): [Call<T>, (work: () => Promise<T>) => Promise<void>] {
  const [call, setCall] = useState<Call<T>>({ answer: null, problem: null, running: false });
  const newest = useRef(0);
  const start = useCallback(async (work: () => Promise<T>) => {
    newest.current += 1;
    const mine = newest.current;
    const show = (change: (before: Call<T>) => Call<T>) => {
      if (mine === newest.current) setCall(change);
    };
    show((before) => ({ ...before, running: true }));
    try {
      const answer = await work();
      show(() => ({ answer, problem: null, running: false }));
    } catch (thrown) {
      show((before) => ({ ...before, problem: problemOf(thrown), running: false }));
    }
  }, []);
  return [call, start];
}

/** Milliseconds between two looks at what goes on. */
const REFRESH = 3000;

/**
 * Calls now, again and again, and whenever one of `inputs` changes. Returns what calls at once, too. A hidden
 * page does not call, nor does one that still waits for an answer.
 */
export function usePolled<T>(work: () => Promise<T>, inputs: unknown[]): [Call<T>, () => void] {
  const [call, start] = useCall<T>();
  useEffect(() => {
    let waits = false;
    const look = async () => {
      if (waits || document.hidden) return;
      waits = true;
      await start(work);
      waits = false;
    };
    void look();
    const timer = setInterval(look, REFRESH);
    return () => clearInterval(timer);
  }, inputs);
  return [call, () => void start(work)];
}

/** Calls now, and again whenever one of `inputs` changes. */
export function useLoaded<T>(work: () => Promise<T>, inputs: unknown[]): Call<T> {
  const [call, start] = useCall<T>();
  useEffect(() => void start(work), inputs);
  return call;
}
