import type { Change } from "../api/wire";
import { Dialog } from "../parts/dialog";
import { counted } from "../parts/sentences";

interface Props {
  title: string;
  changes: Change[];
  onConfirm: () => void;
  onClose: () => void;
}

/** Lists what will be written, and writes only after a second click. */
export function ConfirmChanges({ title, changes, onConfirm, onClose }: Props) {
  return (
    <Dialog title={title} onClose={onClose}>
      <p>This changes {counted(changes.length, "object")} on the hub, under your own rights:</p>
      <ul class="changes">
        {changes.map((item) => (
          <li key={`${item.kind} ${item.name}`}>
            {item.action} {item.kind} {item.namespace}/{item.name}
          </li>
        ))}
      </ul>
      <button type="button" class="primary" onClick={onConfirm}>
        Apply
      </button>
    </Dialog>
  );
}
