import type { ComponentChildren } from "preact";

/** A question of the first screen and its answer; `control` stands beside the question. */
export function Panel(props: {
  title: string;
  class: string;
  control?: ComponentChildren;
  children: ComponentChildren;
}) {
  return (
    <section class={`panel ${props.class}`} aria-label={props.title}>
      <div class="asked">
        <h2>{props.title}</h2>
        {props.control}
      </div>
      {props.children}
    </section>
  );
}
