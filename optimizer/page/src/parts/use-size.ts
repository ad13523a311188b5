import { useEffect, useRef, useState } from "preact/hooks";
import type { RefObject } from "preact";

/** The width and height of an element in CSS pixels, as they change; 0 until it is drawn. */
export function useSize<T extends HTMLElement>(): [RefObject<T | null>, number, number] {
  const element = useRef<T>(null);
  const [{ width, height }, setSize] = useState({ width: 0, height: 0 });
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => setSize(entry!.contentRect));
    observer.observe(element.current!);
    return () => observer.disconnect();
  }, []);
  return [element, width, height];
}
