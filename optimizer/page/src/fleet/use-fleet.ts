import { useCallback, useEffect, useState } from "preact/hooks";
import { type OptimizerApi, problemOf } from "../api/optimizer-api";
import type { Fleet, Problem } from "../api/wire";

/** Milliseconds between two reads of the fleet. An unchanged one costs an answer without a body. */
const REFRESH = 10_000;

/**
 * The fleet as it was read last, when that was in milliseconds of this machine's clock, and what hinders
 * reading it now. A hidden page does not read.
 */
export function useFleet(api: OptimizerApi, namespace: string) {
  const [fleet, setFleet] = useState<Fleet | null>(null);
  const [readAt, setReadAt] = useState(0);
  const [problem, setProblem] = useState<Problem | null>(null);
  const refresh = useCallback(async () => {
    try {
      const found = await api.fleet(namespace);
      if (found) setFleet(found);
      setReadAt(Date.now());
      setProblem(null);
    } catch (thrown) {
      setProblem(problemOf(thrown));
    }
  }, [api, namespace]);
  useEffect(() => {
    void refresh();
    const timer = setInterval(() => document.hidden || void refresh(), REFRESH);
    return () => clearInterval(timer);
  }, [refresh]);
  return { fleet, readAt, problem, refresh };
}
