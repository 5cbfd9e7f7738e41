// JSON merge patch (RFC 7396), applied in place: a run's items are tens of thousands, of which a patch
// names a few. Whoever looks is told that something changed; nobody compares objects.
export function applyPatch(target: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch;
  const result: Record<string, unknown> = isObject(target) ? target : {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else result[key] = isObject(value) ? applyPatch(result[key], value) : value;
  }
  return result;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
