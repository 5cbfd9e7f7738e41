import { useLive, useNow } from "../api/live";
import type { FailureExample, FailureGroup, Failures } from "../api/types";
import { count, plural } from "../lib/format";
import { pageOf } from "../lib/places";
import { setFilters } from "../lib/route";
import { Ago, Chips, Empty } from "../parts/bits";
import { Loaded } from "../parts/loading";
import { Table } from "../parts/table";
import { byWeight, kindsOf } from "./overview";

type Kind = "" | FailureExample["kind"];

// Failures grouped by similar errors. A group expands to its occurrences, each with a link.
export function FailuresPage({ query }: { query: URLSearchParams }) {
  const topic = useLive<Failures>("/api/v1/failures");
  const now = useNow();
  const text = (query.get("q") ?? "").toLowerCase();
  const kind = (query.get("kind") ?? "") as Kind;
  return (
    <>
      <h1>Failures</h1>
      <Loaded topic={topic}>
        {(data) => {
          const groups = Object.values(data.groups).sort(byWeight);
          const kinds = [...new Set(groups.flatMap((group) => Object.keys(group.kinds)))].sort();
          const shown = groups.filter(
            (group) =>
              (!kind || kind in group.kinds) &&
              (!text || group.signature.toLowerCase().includes(text)),
          );
          return (
            <>
              <div class="filters">
                <input
                  type="search"
                  placeholder="Error text"
                  aria-label="Filter failures"
                  value={query.get("q") ?? ""}
                  onInput={(event) => setFilters({ q: event.currentTarget.value })}
                />
                <Chips<Kind>
                  label="Kind"
                  value={kind}
                  onChange={(value) => setFilters({ kind: value })}
                  choices={[
                    ["", "All"],
                    ...kinds.map((one): [Kind, string] => [one as Kind, one.replaceAll("_", " ")]),
                  ]}
                />
                <span class="muted">
                  {plural(data.total, "failure")} in {plural(groups.length, "group")}
                </span>
              </div>
              {!groups.length && (
                <section class="panel">
                  <Empty>Nothing has failed.</Empty>
                </section>
              )}
              {groups.length > 0 && !shown.length && (
                <section class="panel">
                  <Empty>No matching failures.</Empty>
                </section>
              )}
              {shown.map((group) => (
                <Group
                  key={group.signature}
                  group={group}
                  now={now}
                  open={query.get("signature") === group.signature || shown.length === 1}
                />
              ))}
            </>
          );
        }}
      </Loaded>
    </>
  );
}

function Group({ group, open, now }: { group: FailureGroup; open: boolean; now: number }) {
  return (
    <details class="panel group" open={open}>
      <summary>
        <span class="big failed">{count(group.count)}</span>
        <span class="signature">{group.signature}</span>
        <span class="muted">{kindsOf(group)}</span>
      </summary>
      <Table
        rows={group.examples.map((example, index) => ({ ...example, index }))}
        rowKey={({ index }) => index}
        columns={[
          {
            title: "Where",
            cell: (one) => (
              <>
                <a
                  class="mono"
                  href={pageOf(one.path, one.kind === "stream" ? streamOf(one.name) : "")}
                >
                  {one.name || "(no id)"}
                </a>
                <span class="sub">{one.kind.replaceAll("_", " ")}</span>
              </>
            ),
          },
          { title: "Run", cell: (one) => <span class="nowrap">{one.run}</span> },
          { title: "Error", kind: "words", cell: (one) => one.error },
          { title: "When", cell: (one) => one.at !== undefined && <Ago at={one.at} now={now} /> },
        ]}
      />
      {group.count > group.examples.length && (
        <p class="muted more">
          The first {count(group.examples.length)} of {count(group.count)}.
        </p>
      )}
    </details>
  );
}

// A parked stream is named with its projection, "orders/order-7".
function streamOf(name: string): string {
  return name.slice(name.indexOf("/") + 1);
}
