import { href } from "./route";

// The page for the API's `path`, so that a failure links to its row.
export function pageOf(path: string, name = ""): string {
  const [address = "", search = ""] = path.split("?");
  const parts = address
    .replace(/^\/api\/v1\//, "")
    .split("/")
    .map(decodeURIComponent);
  const query = Object.fromEntries(new URLSearchParams(search));
  const [first = "", store = "", kind, id = "", ...rest] = parts;
  if (first === "dead-letters") return href(["dead-letters", store], query);
  if (first !== "stores") return href([]);
  if (kind === "migrations" && rest[0] === "tasks") {
    return href(["migrations", store, id, rest[1] ?? "", rest[2] ?? ""]);
  }
  if (kind === "migrations") return href(["migrations", store, id]);
  if (kind === "work") return href(["work", store, id], { item: rest[1] ?? "" });
  if (kind === "replica-sets") return href(["replicas", store, id], { stream: name });
  return href([]);
}
