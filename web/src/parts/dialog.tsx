import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

// A modal dialog; Escape and a click outside close it.
export function Dialog(props: {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
  footer: ComponentChildren;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog
      ref={dialog}
      aria-label={props.title}
      onClose={props.onClose}
      onClick={(event) => event.target === dialog.current && props.onClose()}
    >
      <header>
        <h2>{props.title}</h2>
      </header>
      <div class="body">{props.children}</div>
      <footer>{props.footer}</footer>
    </dialog>
  );
}
