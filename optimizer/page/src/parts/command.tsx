import { useId, useRef, useState } from "preact/hooks";

/** Names as Kubernetes allows them: nothing else of others becomes a part of a command. */
const SAFE = /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/;

/** A command for a terminal; null where a name in it could be more than a name. */
export function commandOf(parts: TemplateStringsArray, ...names: string[]): string | null {
  return names.every((name) => SAFE.test(name)) ? String.raw({ raw: parts }, ...names) : null;
}

/** A command that says or does the same in a terminal, and a button that copies it. */
export function Command({ text }: { text: string | null }) {
  const code = useRef<HTMLElement>(null);
  const id = useId();
  const [copied, setCopied] = useState(false);
  if (text === null) return null;
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      // Pages without https and frames of a chat may not: what is selected can be copied still.
      getSelection()?.selectAllChildren(code.current!);
      if (!document.execCommand("copy")) return;
    }
    setCopied(true);
  };
  return (
    <span class="command">
      <code ref={code} id={id}>
        {text}
      </code>
      <button type="button" aria-describedby={id} onClick={copy}>
        {copied ? "Copied" : "Copy"}
      </button>
    </span>
  );
}
