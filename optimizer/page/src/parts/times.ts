/** How long ago or until, as kubectl prints it: 45s, 3m, 2h, 5d. */
export function duration(seconds: number): string {
  const size = Math.abs(Math.round(seconds));
  if (size < 120) return `${size}s`;
  if (size < 7200) return `${Math.floor(size / 60)}m`;
  if (size < 172800) return `${Math.floor(size / 3600)}h`;
  return `${Math.floor(size / 86400)}d`;
}

/** Seconds since an RFC 3339 time. */
export function secondsSince(time: string): number {
  return (Date.now() - Date.parse(time)) / 1000;
}

/** `3m ago`, or nothing for no time. A time that is ahead of this clock by more than clocks differ says so. */
export function ago(time: string | null): string {
  if (!time) return "";
  const seconds = secondsSince(time);
  return seconds < -SKEW
    ? `in ${duration(seconds)}, by a clock that differs from yours`
    : `${duration(Math.max(0, seconds))} ago`;
}

/** Seconds that clocks of two machines may differ. */
export const SKEW = 60;
