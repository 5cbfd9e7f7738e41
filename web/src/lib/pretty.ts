// JSON text with a line for every member, and every number as it was written: to parse and print it
// again would change 1.0 and what is beyond 64 bits. What is no JSON stays as it is.
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
