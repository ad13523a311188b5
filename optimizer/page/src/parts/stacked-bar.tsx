/** A part of a whole. `tone` names its fill in the style sheet. */
export interface Part {
  name: string;
  amount: number;
  tone: "used" | "good" | "fair" | "others" | "idle" | "free" | "warning" | "broken" | "unknown";
}

/** Parts of a whole beside each other; a reader of the screen hears `said`. */
export function StackedBar({ parts, said }: { parts: Part[]; said: string }) {
  const whole = parts.reduce((sum, { amount }) => sum + amount, 0) || 1;
  return (
    <span class="bar" role="img" aria-label={said} title={said}>
      {parts
        .filter(({ amount }) => amount > 0)
        .map(({ name, amount, tone }) => (
          <span key={name} class={`fill-${tone}`} style={{ width: `${(100 * amount) / whole}%` }} />
        ))}
    </span>
  );
}

/** What the fills of bars mean, with an amount where it has one. */
export function Key({ parts }: { parts: { name: string; tone: Part["tone"]; said?: string }[] }) {
  return (
    <ul class="key">
      {parts.map(({ name, tone, said }) => (
        <li key={name}>
          <span class={`swatch fill-${tone}`} aria-hidden="true" />
          {said ? `${said} ${name}` : name}
        </li>
      ))}
    </ul>
  );
}
