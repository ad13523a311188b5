import { useCallback, useEffect, useState } from "preact/hooks";
import { problemOf } from "../api/optimizer-api";
import type { Problem } from "../api/wire";

/** A call to the optimizer: its answer or its problem, and whether it runs. */
export interface Call<T> {
  answer: T | null;
  problem: Problem | null;
  running: boolean;
}

/** Returns the call's state, and what starts it. A new call keeps the old answer until it ends. */
export function useCall<T>(): [Call<T>, (work: () => Promise<T>) => Promise<void>] {
  const [call, setCall] = useState<Call<T>>({ answer: null, problem: null, running: false });
  const start = useCallback(async (work: () => Promise<T>) => {
    setCall((before) => ({ ...before, running: true }));
    try {
      setCall({ answer: await work(), problem: null, running: false });
    } catch (thrown) {
      setCall((before) => ({ ...before, problem: problemOf(thrown), running: false }));
    }
  }, []);
  return [call, start];
}

/** Calls now, and again whenever one of `inputs` changes. */
export function useLoaded<T>(work: () => Promise<T>, inputs: unknown[]): Call<T> {
  const [call, start] = useCall<T>();
  useEffect(() => void start(work), inputs);
  return call;
}
