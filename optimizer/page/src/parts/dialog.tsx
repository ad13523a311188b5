import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";

/** A modal dialog. The browser keeps the focus inside, and Escape closes it. */
export function Dialog(props: { title: string; children: ComponentChildren; onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const title = useId();
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} aria-labelledby={title} onClose={props.onClose}>
      <header>
        <h2 id={title}>{props.title}</h2>
        <button type="button" class="quiet" onClick={props.onClose}>
          Close
        </button>
      </header>
      {props.children}
    </dialog>
  );
}
