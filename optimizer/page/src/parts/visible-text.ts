import { Fragment, h, options, type ComponentChildren, type VNode } from "preact";

/** Controls, bidirectional marks, zero-width and tag characters, fillers: nobody sees them. */
const INVISIBLE = /(?!\n)[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]/gu;

/** Letters that are written from right to left, and so reorder what stands beside them. */
const RIGHT_TO_LEFT =
  /[\p{Script=Hebrew}\p{Script=Arabic}\u0700-\u08ff\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;

/** Attributes that are read by people. */
const SPOKEN = ["title", "aria-label", "placeholder", "alt"];

/** Elements that contain text alone, or isolate it themselves. */
const NOT_ISOLATED = ["option", "title", "bdi"];

/** The text with each invisible character as an escape such as `\u202e`, as `dsf` prints it. */
export function visible(text: string): string {
  return text.replace(INVISIBLE, (character) => {
    const code = character.codePointAt(0) ?? 0;
    const [mark, size] = code < 0x100 ? ["x", 2] : code < 0x10000 ? ["u", 4] : ["U", 8];
    return `\\${mark}${code.toString(16).padStart(size, "0")}`;
  });
}

/**
 * Makes every text that is drawn from now on visible and isolated, whoever wrote it: names, messages and
 * descriptions come from objects of others. A hook and not a component, so that no view can forget it.
 */
export function showEveryText(): void {
  const before = options.vnode;
  options.vnode = (vnode: VNode) => {
    const { type, props } = vnode as VNode<Record<string, unknown>>;
    if (typeof type === "string" || type === Fragment) {
      const isolate = !NOT_ISOLATED.includes(String(type));
      if ("children" in props) props.children = shown(props.children as ComponentChildren, isolate);
      for (const name of SPOKEN) {
        if (typeof props[name] === "string") props[name] = visible(props[name]);
      }
    }
    before?.(vnode);
  };
}

function shown(children: ComponentChildren, isolate: boolean): ComponentChildren {
  if (Array.isArray(children)) return children.map((child) => shown(child, isolate));
  if (typeof children !== "string") return children;
  const text = visible(children);
  return isolate && RIGHT_TO_LEFT.test(text) ? h("bdi", null, text) : text;
}
