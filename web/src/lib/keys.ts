import { useEffect } from "preact/hooks";

// Keys and what they do, as listed in the help behind "?". If two pages use the same key, the topmost
// wins.
export interface Key {
  keys: string; // "g m": one after the other
  what: string;
  run: () => void;
}

const layers: Key[][] = [];
let pending = "";
let pendingUntil = 0;

export function activeKeys(): Key[] {
  const seen = new Set<string>();
  const all: Key[] = [];
  for (const layer of [...layers].reverse()) {
    for (const key of layer) {
      if (!seen.has(key.keys)) all.push(key);
      seen.add(key.keys);
    }
  }
  return all;
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.matches("input, textarea, select");
}

function pressed(event: KeyboardEvent): void {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (isTyping(event.target)) {
    if (event.key === "Escape") (event.target as HTMLElement).blur();
    return;
  }
  if (document.querySelector("dialog[open]")) return;
  const typed = event.timeStamp < pendingUntil ? `${pending} ${event.key}` : event.key;
  pending = "";
  pendingUntil = 0;
  const keys = activeKeys();
  const key = keys.find((one) => one.keys === typed);
  if (key) {
    event.preventDefault();
    key.run();
  } else if (keys.some((one) => one.keys.startsWith(event.key + " "))) {
    pending = event.key;
    pendingUntil = event.timeStamp + 1000;
  }
}

export function startKeys(): void {
  addEventListener("keydown", pressed);
}

export function useKeys(keys: Key[]): void {
  useEffect(() => {
    layers.push(keys);
    return () => void layers.splice(layers.indexOf(keys), 1);
  });
}
