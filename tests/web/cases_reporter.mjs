// For node --test-reporter: a line for each test, as scripts/testing/suites.py reads them.
export default async function* cases(events) {
  for await (const { type, data } of events) {
    if (type !== "test:pass" && type !== "test:fail") continue;
    if (data.details?.type === "suite" || data.name.endsWith(".mjs")) continue;
    const verdict =
      data.skip !== undefined ? "skipped" : type === "test:pass" ? "passed" : "failed";
    yield `${verdict} ${data.name}\n`;
  }
}
