import type { Kept } from "../api/wire";
import { figure } from "../parts/sentences";

/** By which scores a value or a gain counts. Those of a moment swing, so what is kept placed goes by means. */
export const [BY_NOW, BY_MEANS] = ["by scores of now", "by averaged scores"];

/** What a better plan of what is kept placed would gain, by which scores, and since when that is known. */
export function gainTold({ status }: Kept): string {
  if (status.gain == null) return `a gain ${BY_MEANS} that is not known yet`;
  return `a gain of ${figure(status.gain)} ${BY_MEANS}, at its last look`;
}
