import type { ComponentChildren } from "preact";
import type { Topic } from "../api/live";
import { Empty } from "./bits";

// Shows a topic once there is something to show. A problem of now stands above data of before.
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
