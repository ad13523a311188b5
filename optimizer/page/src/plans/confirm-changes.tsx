import type { Change, Move } from "../api/wire";
import { Command } from "../parts/command";
import { Dialog } from "../parts/dialog";
import { counted } from "../parts/sentences";
import { countsByAction } from "./plan-figures";

interface Props {
  title: string;
  moves: Move[];
  changes: Change[];
  /** What does the same in a terminal. */
  command?: string | null;
  onConfirm: () => void;
  onClose: () => void;
}

/** What happens to how many workloads, such as `stops 1, starts 2`. */
export function effects(moves: Move[]): string {
  const { stays, ...counts } = countsByAction(moves);
  const told = Object.entries(counts).filter(([, count]) => count > 0);
  return told.map(([action, count]) => `${action} ${count}`).join(", ") || "all stay";
}

/** Says what happens, lists what will be written, and writes only after a second click. */
export function ConfirmChanges({ title, moves, changes, command, onConfirm, onClose }: Props) {
  return (
    <Dialog title={title} onClose={onClose}>
      <p>Workloads: {effects(moves)}.</p>
      <p>This changes {counted(changes.length, "object")} on the hub, under your own rights:</p>
      <ul class="changes">
        {changes.map((item) => (
          <li key={`${item.kind} ${item.name}`}>
            {item.action} {item.kind} {item.namespace}/{item.name}
          </li>
        ))}
      </ul>
      <Command text={command ?? null} />
      <button type="button" class="primary" onClick={onConfirm}>
        Apply
      </button>
    </Dialog>
  );
}
