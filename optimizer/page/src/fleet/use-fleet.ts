import { useCallback, useEffect, useState } from "preact/hooks";
import { type OptimizerApi, problemOf } from "../api/optimizer-api";
import type { Fleet, Problem } from "../api/wire";

/** Milliseconds between two reads of the fleet where nobody tells of changes. */
const REFRESH = 10_000;

/**
 * The fleet as it was read last, when that was in milliseconds of this machine's clock, and what hinders
 * reading it now. It is read when the optimizer says that it has changed, and every ten seconds while
 * there is no stream that would. A hidden page does neither.
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
    let stream: AbortController | null = null;
    let follows = false;
    const follow = () => {
      if (stream || !api.follow) return;
      const mine = (stream = new AbortController());
      const alive = () => {
        follows = true;
        setReadAt(Date.now());
      };
      void api
        .follow(namespace, mine.signal, () => void refresh(), alive)
        .catch(() => {})
        .finally(() => {
          if (stream === mine) stream = null;
          follows = false;
        });
    };
    const look = () => {
      if (document.hidden) {
        stream?.abort();
        stream = null;
        return;
      }
      if (!follows) void refresh();
      follow();
    };
    look();
    const timer = setInterval(look, REFRESH);
    return () => {
      clearInterval(timer);
      stream?.abort();
    };
  }, [api, namespace, refresh]);
  return { fleet, readAt, problem, refresh };
}
