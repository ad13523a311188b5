/** Begins with a word of a sentence: not with a command, nor with a name such as `plan_placement` or a URL. */
const WORDS = /^(?!(dsf|kubectl|helm|clusteradm)\b)\p{Ll}[\p{Ll}'’]*[,:;.]?(\s|$)/u;

/** A message of the API as a sentence of its own: they begin small, to stand behind a name. */
export function sentence(message: string): string {
  const end = /[.!?]$/.test(message) ? "" : ".";
  const first = message.charAt(0);
  return message && (WORDS.test(message) ? first.toUpperCase() : first) + message.slice(1) + end;
}

/** A number with at most two decimals. */
export function figure(value: number): string {
  return String(Math.round(value * 100) / 100);
}

/** The first names, and how many there are besides; `count`: of all of them. */
export function listed(names: string[], most: number, count = names.length): string {
  const first = names.slice(0, most);
  const more = count - first.length;
  return first.join(", ") + (more > 0 ? ` and ${more} more` : "");
}

/** `1 object`, `2 objects`. */
export function counted(amount: number, noun: string): string {
  return `${amount} ${noun}${amount === 1 ? "" : "s"}`;
}
