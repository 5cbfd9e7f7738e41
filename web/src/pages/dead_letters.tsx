import { useEffect, useState } from "preact/hooks";
import { type ApiError, apiPath, get } from "../api/client";
import { useLive, useNow } from "../api/live";
import type { DeadLetter, DeadLetterFile, DeadLetterFiles, DeadLetters } from "../api/types";
import { count, plural, short } from "../lib/format";
import { href, setFilters } from "../lib/route";
import { Actions } from "../parts/action";
import { Ago, Crumbs, Empty, Facts, Text } from "../parts/bits";
import { Loaded } from "../parts/loading";
import { Table } from "../parts/table";

const filesPath = "/api/v1/dead-letters";

// Documents that could not be migrated, by dead-letter file.
export function DeadLettersPage({ query }: { query: URLSearchParams }) {
  const topic = useLive<DeadLetterFiles>(filesPath);
  const now = useNow();
  return (
    <>
      <h1>Dead letters</h1>
      <Loaded topic={topic}>
        {({ folder, files: all }) => {
          const run = query.get("run") ?? "";
          const files = Object.entries(all).filter(([, file]) => !run || file.run === run);
          return (
            <section class="panel" aria-label="Dead-letter files">
              <header>
                <span class="muted">
                  in <code>{folder}</code>
                </span>
                {run && (
                  <button class="plain end" onClick={() => setFilters({ run: "" })}>
                    of run {run} only: show all
                  </button>
                )}
              </header>
              {files.length ? (
                <Table
                  rows={files}
                  rowKey={([name]) => name}
                  columns={[
                    {
                      title: "File",
                      cell: ([name]) => <a href={href(["dead-letters", name])}>{name}</a>,
                    },
                    { title: "Run", cell: ([, file]) => <RunLink file={file} /> },
                    { title: "Letters", kind: "number", cell: ([, file]) => count(file.letters) },
                    {
                      title: "Kilobytes",
                      kind: "number",
                      cell: ([, file]) => short(file.bytes / 1000),
                    },
                    {
                      title: "Most frequent error",
                      kind: "words",
                      cell: ([, file]) => mostFrequent(file.signatures),
                    },
                    {
                      title: "Changed",
                      cell: ([, file]) =>
                        file.changed_at !== undefined && <Ago at={file.changed_at} now={now} />,
                    },
                    {
                      title: "Actions",
                      kind: "actions",
                      cell: ([name, file]) => <Actions actions={file.actions} of={name} />,
                    },
                  ]}
                />
              ) : (
                <Empty>Every document so far could be migrated.</Empty>
              )}
            </section>
          );
        }}
      </Loaded>
    </>
  );
}

function RunLink({ file }: { file: DeadLetterFile }) {
  if (file.store === undefined) return <>{file.run}</>;
  return <a href={href(["work", file.store, file.run])}>{file.run}</a>;
}

function mostFrequent(signatures: Record<string, number> | undefined): string {
  const [first] = Object.entries(signatures ?? {}).sort(([, a], [, b]) => b - a);
  return first ? `${first[0]} (${count(first[1])})` : "";
}

export function DeadLetterFilePage({ file, query }: { file: string; query: URLSearchParams }) {
  const files = useLive<DeadLetterFiles>(filesPath);
  const signature = query.get("signature") ?? "";
  const after = query.get("after") ?? "0";
  const [page, setPage] = useState<DeadLetters>();
  const [error, setError] = useState<ApiError>();
  const info = files.data?.files[file];
  useEffect(() => {
    const stop = new AbortController();
    const search = new URLSearchParams({ after, limit: "100" });
    if (signature) search.set("signature", signature);
    get<DeadLetters>(`${apiPath("dead-letters", file)}?${search}`, stop.signal).then(
      (letters) => {
        setPage(letters);
        setError(undefined);
      },
      (problem: ApiError) => !stop.signal.aborted && setError(problem),
    );
    return () => stop.abort();
    // A file that has grown has more to show.
  }, [file, after, signature, info?.letters]);
  return (
    <>
      <Crumbs steps={[["Dead letters", href(["dead-letters"])]]} />
      <div class="head">
        <div class="grow">
          <h1>{file}</h1>
        </div>
        <Actions actions={info?.actions} of={file} />
      </div>
      {info && (
        <Facts
          facts={[
            ["Letters", count(info.letters)],
            ["Run", <RunLink file={info} />],
            ["Sink", info.sink ?? "unknown"],
          ]}
        />
      )}
      {info?.signatures && Object.keys(info.signatures).length > 1 && (
        <select
          class="start"
          aria-label="Error"
          value={signature}
          onChange={(event) => setFilters({ signature: event.currentTarget.value, after: "" })}
        >
          <option value="">All errors</option>
          {Object.entries(info.signatures).map(([name, number]) => (
            <option key={name} value={name}>{`${name} (${count(number)})`}</option>
          ))}
        </select>
      )}
      {info?.job && (
        <p class={info.job.failed ? "why failed" : "why"} role="status">
          <span>
            {info.job.running ? "Being redriven: " : "Last redrive: "}
            {info.job.text}
          </span>
        </p>
      )}
      {error && (
        <p class="why failed" role="alert">
          <span>{error.message}</span>
        </p>
      )}
      {page && !page.letters.length && (
        <section class="panel">
          <Empty>No matching letters.</Empty>
        </section>
      )}
      {page?.letters.map((letter, index) => (
        <Letter key={letter.offset} letter={letter} open={index === 0} />
      ))}
      <div class="buttons">
        {after !== "0" && (
          <button onClick={() => setFilters({ after: "" })}>From the beginning</button>
        )}
        {page?.next !== undefined && (
          <button onClick={() => setFilters({ after: page.next })}>
            Next {plural(100, "letter")}
          </button>
        )}
      </div>
    </>
  );
}

function Letter({ letter, open }: { letter: DeadLetter; open: boolean }) {
  return (
    <details class="panel group" open={open}>
      <summary>
        <code>{letter.id || `(no id, position ${letter.position ?? "unknown"})`}</code>
        <span class="signature">{letter.error}</span>
        <span class="muted">{letter.collection}</span>
      </summary>
      <div class="body stack">
        <dl class="rows">
          <div>
            <dt>Collection</dt>
            <dd>{letter.collection}</dd>
          </div>
          <div>
            <dt>Item</dt>
            <dd class="mono">{letter.item}</dd>
          </div>
          {letter.position && (
            <div>
              <dt>Position</dt>
              <dd class="mono">{letter.position}</dd>
            </div>
          )}
          <div>
            <dt>Run</dt>
            <dd>{letter.run}</dd>
          </div>
        </dl>
        {letter.document !== undefined ? (
          <Text label={`Document ${letter.id}`} text={letter.document} />
        ) : (
          <p class="muted">The document itself is not readable as text.</p>
        )}
      </div>
    </details>
  );
}
