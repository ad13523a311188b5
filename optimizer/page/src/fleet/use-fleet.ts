import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { type OptimizerApi, problemOf } from "../api/optimizer-api";
import type { Fleet, Problem } from "../api/wire";
import { changesBetween, NO_CHANGES } from "./fleet-changes";

/** Milliseconds between two reads of the fleet where nobody tells of changes. */
const REFRESH = 10_000;

/** The same where somebody does: how old the fleet may be is only told by an answer. */
const CONFIRM = 60_000;

/** Milliseconds without a sign of life, which comes every 15 s, after which a stream is taken for dead. */
const SILENT = 45_000;

/**
 * The fleet as it was read last, what differs from the read before, when that was in milliseconds of this
 * machine's clock, and what hinders reading it now. It is read when the optimizer says that it has changed, once
 * a minute besides, and every ten seconds while there is no stream that would say so. A hidden page reads nothing.
 */
export function useFleet(api: OptimizerApi, namespace: string) {
  const [fleet, setFleet] = useState<Fleet | null>(null);
  const [readAt, setReadAt] = useState(0);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [changes, setChanges] = useState(NO_CHANGES);
  const last = useRef<Fleet | null>(null);
  const refresh = useCallback(async () => {
    try {
      const found = await api.fleet(namespace);
      const [before, after] = [last.current, found.fleet];
      if (after) {
        last.current = after;
        setFleet(after);
        if (before) setChanges(({ number }) => changesBetween(before, after, number + 1));
      }
      setReadAt(Date.now() - found.age * 1000);
      setProblem(null);
    } catch (thrown) {
      setProblem(problemOf(thrown));
    }
  }, [api, namespace]);
  useEffect(() => {
    let stream: AbortController | null = null;
    let heardAt = 0;
    let askedAt = 0;
    const ask = () => {
      askedAt = Date.now();
      void refresh();
    };
    const leave = () => {
      stream?.abort();
      stream = null;
      heardAt = 0;
    };
    const follow = () => {
      if (stream || !api.follow) return;
      const mine = (stream = new AbortController());
      void api
        .follow(namespace, mine.signal, ask, () => (heardAt = Date.now()))
        .catch(() => {})
        .finally(() => stream === mine && leave());
    };
    const look = () => {
      if (document.hidden) return leave();
      const now = Date.now();
      if (heardAt && now - heardAt > SILENT) leave();
      if (!heardAt || now - askedAt >= CONFIRM) ask();
      follow();
    };
    look();
    const timer = setInterval(look, REFRESH);
    return () => {
      clearInterval(timer);
      leave();
    };
  }, [api, namespace, refresh]);
  return { fleet, changes, readAt, problem, refresh };
}
