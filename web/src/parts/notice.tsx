import { useEffect, useState } from "preact/hooks";

let show: (text: string) => void = () => undefined;

// Shows the result of an action for a while.
export function notify(text: string): void {
  show(text);
}

export function Notice() {
  const [text, setText] = useState("");
  useEffect(() => {
    show = setText;
  }, []);
  useEffect(() => {
    if (!text) return;
    const timer = setTimeout(() => setText(""), 6000);
    return () => clearTimeout(timer);
  }, [text]);
  return (
    <div role="status" class={text ? "notice" : ""}>
      {text}
    </div>
  );
}
