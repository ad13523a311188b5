import { sentence } from "./sentences";

/** A message of the API as a sentence of its own, with the commands that it quotes as code. */
export function Said({ of }: { of: string }) {
  const parts = sentence(of).split("`");
  if (parts.length % 2 === 0) return <>{sentence(of)}</>;
  return <>{parts.map((part, at) => (at % 2 ? <code key={at}>{part}</code> : part))}</>;
}
