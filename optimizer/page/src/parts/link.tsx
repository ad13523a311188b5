import type { ComponentChildren } from "preact";
import { addressOf, go } from "./use-address";

/** A link to another state of the page: it can be followed, opened in another tab, and copied. */
export function Link(props: {
  to: Record<string, string>;
  current?: boolean;
  title?: string;
  children: ComponentChildren;
}) {
  return (
    <a
      title={props.title}
      href={addressOf(props.to)}
      aria-current={props.current ? "page" : undefined}
      onClick={(event) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey) return;
        event.preventDefault();
        go(props.to);
      }}
    >
      {props.children}
    </a>
  );
}
