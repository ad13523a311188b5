import { useEffect, useState } from "preact/hooks";
import { ago } from "./times";

/** How long ago a time is, which goes on; its tooltip is the time itself. `told` words it otherwise. */
export function Ago({ time, told = ago }: { time: string; told?: (time: string) => string }) {
  const [, draw] = useState({});
  useEffect(() => {
    const timer = setInterval(() => draw({}), 1000);
    return () => clearInterval(timer);
  }, []);
  const known = Number.isFinite(Date.parse(time));
  return (
    <time dateTime={time} title={known ? new Date(time).toUTCString() : undefined}>
      {told(time)}
    </time>
  );
}
