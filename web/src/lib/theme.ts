import { useLayoutEffect, useState } from "preact/hooks";

// Dark or light: the system's preference, until the user chooses.
export type Theme = "dark" | "light";

const kept = "muster-theme";
const systemIsDark = matchMedia("(prefers-color-scheme: dark)");
const listeners = new Set<() => void>();

export function theme(): Theme {
  const chosen = localStorage.getItem(kept);
  if (chosen === "dark" || chosen === "light") return chosen;
  return systemIsDark.matches ? "dark" : "light";
}

function apply(): void {
  document.documentElement.dataset["theme"] = theme();
  for (const listener of listeners) listener();
}

export function startTheme(): void {
  systemIsDark.addEventListener("change", apply);
  apply();
}

export function switchTheme(): void {
  localStorage.setItem(kept, theme() === "dark" ? "light" : "dark");
  apply();
}

export function useTheme(): Theme {
  const [current, setCurrent] = useState(theme);
  useLayoutEffect(() => {
    const changed = () => setCurrent(theme());
    listeners.add(changed);
    return () => void listeners.delete(changed);
  }, []);
  return current;
}

// A colour by its name in the style sheet, for what is drawn on a canvas.
export function colour(name: string): string {
  return getComputedStyle(document.documentElement)
    .getPropertyValue("--" + name)
    .trim();
}
