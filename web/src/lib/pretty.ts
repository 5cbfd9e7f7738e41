// JSON text with a line for every member. Numbers stay as written: parsing and printing would change
// 1.0 and integers beyond 64 bits. Text that is not JSON is returned unchanged.
export function pretty(text: string): string {
  try {
    JSON.parse(text);
  } catch {
    return text;
  }
  let depth = 0;
  const line = () => "\n" + "  ".repeat(depth);
  const tokens = text.match(/"(?:[^"\\]|\\.)*"|[[\]{},:]|[^\s[\]{},:"]+/g) ?? [];
  return tokens
    .map((token, index) => {
      if (token === "{" || token === "[") {
        const closed = tokens[index + 1] === "}" || tokens[index + 1] === "]";
        depth += 1;
        return closed ? token : token + line();
      }
      if (token === "}" || token === "]") {
        const empty = tokens[index - 1] === "{" || tokens[index - 1] === "[";
        depth -= 1;
        return empty ? token : line() + token;
      }
      if (token === ",") return token + line();
      return token === ":" ? ": " : token;
    })
    .join("");
}
