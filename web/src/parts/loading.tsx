import type { ComponentChildren } from "preact";
import type { Topic } from "../api/live";
import { Empty } from "./bits";

// Shows a topic once it has data. A current problem is shown above earlier data.
export function Loaded<T>(props: { topic: Topic<T>; children: (data: T) => ComponentChildren }) {
  const { data, problem } = props.topic;
  return (
    <>
      {problem && (
        <p class="why failed" role="alert">
          <span>
            {problem.message}
            {problem.hint && <span class="muted"> {problem.hint}</span>}
          </span>
        </p>
      )}
      {data !== undefined ? props.children(data) : !problem && <Empty>Reading…</Empty>}
    </>
  );
}
