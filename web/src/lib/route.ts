import { useLayoutEffect, useState } from "preact/hooks";

// The current page: `#/work/orders?state=held` is path ["work", "orders"] with one filter. It
// determines everything a page shows, so that an address can be saved and shared.
export interface Route {
  path: string[];
  query: URLSearchParams;
}

export function parseRoute(hash: string): Route {
  const text = hash.replace(/^#?\/?/, "");
  const mark = text.indexOf("?");
  const path = mark < 0 ? text : text.slice(0, mark);
  const query = mark < 0 ? "" : text.slice(mark + 1);
  return {
    path: path.split("/").filter(Boolean).map(decode),
    query: new URLSearchParams(query),
  };
}

// A typed hash may contain a stray "%".
function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

type Query = Record<string, string | number | undefined>;

export function href(path: (string | number)[], query: Query = {}): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== "") params.set(name, String(value));
  }
  const text = params.toString();
  return "#/" + path.map((part) => encodeURIComponent(part)).join("/") + (text ? "?" + text : "");
}

export function go(address: string): void {
  location.hash = address;
}

export function useRoute(): Route {
  const [route, setRoute] = useState(() => parseRoute(location.hash));
  // A layout effect: an ordinary one would miss changes until the page is painted.
  useLayoutEffect(() => {
    const changed = () => setRoute(parseRoute(location.hash));
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return route;
}

// Filters are part of the address. Setting one replaces the history entry, so that Back leads to the
// previous page, not through every letter typed.
export function setFilters(changes: Query): void {
  const { path, query } = parseRoute(location.hash);
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined || value === "") query.delete(name);
    else query.set(name, String(value));
  }
  const text = query.toString();
  const address = "#/" + path.map(encodeURIComponent).join("/") + (text ? "?" + text : "");
  history.replaceState(null, "", address);
  dispatchEvent(new HashChangeEvent("hashchange"));
}
