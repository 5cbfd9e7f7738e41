import { useEffect, useState } from "preact/hooks";
import { act, ApiError } from "../api/client";
import type { Action, ActionResult, ByKey } from "../api/types";
import { count } from "../lib/format";
import { useKeys } from "../lib/keys";
import { Command } from "./bits";
import { Dialog } from "./dialog";
import { notify } from "./notice";

// What an action is called, and its key on the page.
const known: Record<string, { title: string; key?: string; danger?: boolean }> = {
  retry: { title: "Retry", key: "r" },
  cancel: { title: "Cancel", key: "c", danger: true },
  release: { title: "Release", key: "e", danger: true },
  redrive: { title: "Redrive", key: "r" },
  pause: { title: "Pause", danger: true },
  resume: { title: "Resume" },
  replay: { title: "Replay" },
  scale: { title: "Scale" },
};

// Action buttons. Each first previews its effect, and acts once that is confirmed. Disabled ones stay
// visible and show why.
export function Actions({ actions, of }: { actions: ByKey<Action> | undefined; of: string }) {
  const [open, setOpen] = useState<string>();
  const entries = Object.entries(actions ?? {});
  useKeys(
    entries.flatMap(([name, action]) => {
      const key = known[name]?.key;
      if (!key || !action.allowed) return [];
      return [{ keys: key, what: `${titleOf(name)} ${of}`, run: () => setOpen(name) }];
    }),
  );
  const chosen = open === undefined ? undefined : actions?.[open];
  return (
    <div class="buttons">
      {entries.map(([name, action]) => (
        <button
          key={name}
          class={known[name]?.danger ? "danger" : ""}
          disabled={!action.allowed}
          title={action.why}
          aria-description={action.why}
          onClick={() => setOpen(name)}
          aria-label={`${titleOf(name)} ${of}`}
        >
          {titleOf(name)}…
        </button>
      ))}
      {open !== undefined && chosen && (
        <Preview
          title={`${titleOf(open)} ${of}`}
          verb={titleOf(open)}
          action={chosen}
          danger={!!known[open]?.danger}
          onClose={() => setOpen(undefined)}
        />
      )}
    </div>
  );
}

function titleOf(name: string): string {
  return known[name]?.title ?? name.charAt(0).toUpperCase() + name.slice(1).replaceAll("_", " ");
}

function Preview(props: {
  title: string;
  verb: string;
  danger: boolean;
  action: Action;
  onClose: () => void;
}) {
  const [action] = useState(props.action); // what was previewed is what is done
  const [preview, setPreview] = useState<ActionResult>();
  const [error, setError] = useState<ApiError>();
  const [busy, setBusy] = useState(false);
  useEffect(() => {
    act(action, true).then(setPreview, setError);
  }, []);
  const confirm = async () => {
    setBusy(true);
    try {
      notify((await act(action, false)).what);
      props.onClose();
    } catch (problem) {
      setError(problem as ApiError);
      setBusy(false);
    }
  };
  const affected = preview?.affected ?? preview?.affects.length ?? 0;
  return (
    <Dialog
      title={props.title}
      onClose={props.onClose}
      footer={
        <>
          <button onClick={props.onClose}>Dismiss</button>
          <button
            class={props.danger ? "danger" : "primary"}
            disabled={!preview || busy || !!error}
            onClick={() => void confirm()}
          >
            {props.verb}
          </button>
        </>
      }
    >
      {error && (
        <p class="why failed" role="alert">
          <span>
            {error.message}
            {error.problem?.hint && (
              <>
                <br />
                <span class="muted">{error.problem.hint}</span>
              </>
            )}
          </span>
        </p>
      )}
      {!preview && !error && <p class="muted">Loading the preview…</p>}
      {preview && (
        <>
          <p>{preview.what}</p>
          {affected > 0 && (
            <div>
              <h3>Affects {count(affected)}</h3>
              <ul class="affects">
                {preview.affects.slice(0, 100).map(({ kind, name, effect }) => (
                  <li key={kind + name}>
                    <span class="tag">{kind.replaceAll("_", " ")}</span> <code>{name}</code>{" "}
                    <span class="muted">{effect}</span>
                  </li>
                ))}
              </ul>
              {affected > 100 && <p class="muted">and {count(affected - 100)} more</p>}
            </div>
          )}
          {preview.command && <Command text={preview.command} />}
        </>
      )}
    </Dialog>
  );
}
