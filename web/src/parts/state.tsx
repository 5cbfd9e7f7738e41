import type { JSX } from "preact";
// How a state looks: a colour and, for users who cannot tell colours apart, a shape and a word.
export type Look = "running" | "done" | "waiting" | "backoff" | "failed";

const shapes: Record<Look, JSX.Element> = {
  running: <path d="M5 3.2v9.6l7.6-4.8z" />,
  done: <path d="M3 8.4l3.4 3.4L13 5.2" class="stroke" />,
  waiting: <circle cx="8" cy="8" r="4.6" class="stroke" />,
  backoff: <path d="M12.6 8A4.6 4.6 0 1 1 11 4.5M11.2 1.8v3h-3" class="stroke" />,
  failed: <path d="M4 4l8 8M12 4l-8 8" class="stroke" />,
};

const looks: Record<string, Look> = {
  running: "running",
  in_progress: "running",
  held: "running",
  preparing: "backoff",
  retrying: "backoff",
  backoff: "backoff",
  completed: "done",
  succeeded: "done",
  finished: "done",
  done: "done",
  failed: "failed",
  timed_out: "failed",
  quarantined: "failed",
  unreadable: "failed",
  cancelled: "failed",
  stopped: "failed",
  aborted: "failed",
  dead: "failed",
};

// Any state the server may send; an unknown one is shown as waiting.
export function look(state: string): Look {
  return looks[state.toLowerCase()] ?? "waiting";
}

export function Shape({ look }: { look: Look }) {
  return (
    <svg class={"shape " + look} viewBox="0 0 16 16" width="14" height="14" aria-hidden="true">
      {shapes[look]}
    </svg>
  );
}

export function State({ state, as }: { state: string; as?: Look }) {
  const shown = as ?? look(state);
  return (
    <span class={"state " + shown}>
      <Shape look={shown} />
      {state.toLowerCase().replaceAll("_", " ")}
    </span>
  );
}
