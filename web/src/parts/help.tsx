import { Fragment } from "preact";
import { useState } from "preact/hooks";
import { activeKeys } from "../lib/keys";
import { Dialog } from "./dialog";

// The keys of the page that is open.
export function Help({ onClose }: { onClose: () => void }) {
  const [keys] = useState(activeKeys);
  return (
    <Dialog title="Keys" onClose={onClose} footer={<button onClick={onClose}>Close</button>}>
      <div class="keys">
        {keys.map(({ keys, what }) => (
          <Fragment key={keys}>
            <span>
              {keys.split(" ").map((key, index) => (
                <Fragment key={key}>
                  {index > 0 && " "}
                  <kbd>{key}</kbd>
                </Fragment>
              ))}
            </span>
            <span>{what}</span>
          </Fragment>
        ))}
        <kbd>Enter</kbd>
        <span>opens the selected row</span>
        <kbd>Esc</kbd>
        <span>closes a dialog, leaves a field</span>
      </div>
    </Dialog>
  );
}
