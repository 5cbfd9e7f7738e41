import { useLive } from "../api/live";
import type { Overview, WorkSummary } from "../api/types";
import { count, duration, rate, short } from "../lib/format";
import { href } from "../lib/route";
import { Bad, Bar, Empty } from "../parts/bits";
import { Loaded } from "../parts/loading";
import { State } from "../parts/state";
import { Table } from "../parts/table";
import { overviewPath } from "../parts/top_bar";

export function WorkPage() {
  const topic = useLive<Overview>(overviewPath);
  return (
    <>
      <h1>Work</h1>
      <Loaded topic={topic}>
        {({ work }) => (
          <section class="panel" aria-label="Work">
            {Object.keys(work).length ? (
              <WorkTable runs={Object.values(work)} />
            ) : (
              <Empty>
                No shared migrations here yet. Start one with <code>muster worker SOURCE SINK</code>
                .
              </Empty>
            )}
          </section>
        )}
      </Loaded>
    </>
  );
}

export function WorkTable({ runs }: { runs: WorkSummary[] }) {
  return (
    <Table
      rows={runs}
      rowKey={(run) => `${run.store}/${run.run}`}
      columns={[
        {
          title: "Run",
          kind: "words",
          cell: (run) => (
            <>
              <a href={href(["work", run.store, run.run])}>{run.run}</a>
              <span class="sub">
                {run.source} → {run.sink}
              </span>
            </>
          ),
        },
        {
          title: "State",
          cell: (run) => (
            <>
              <WorkState run={run} />
              {run.why && <span class="sub">{run.why}</span>}
            </>
          ),
        },
        {
          title: "Items",
          cell: (run) => (
            <span class="nowrap">
              <Bar fraction={run.items ? run.done / run.items : 0} label="Items done" />{" "}
              <span class="muted">
                {count(run.done)}/{count(run.items)}
              </span>
            </span>
          ),
        },
        { title: "Held", kind: "number", cell: (run) => count(run.held) },
        { title: "Quarantined", kind: "number", cell: (run) => <Bad number={run.quarantined} /> },
        {
          title: "Documents",
          kind: "number",
          cell: (run) => (
            <span class="nowrap">
              {short(run.counts.read)}
              {run.documents !== undefined && <span class="muted"> of {short(run.documents)}</span>}
            </span>
          ),
        },
        { title: "Rejected", kind: "number", cell: (run) => <Bad number={run.counts.failed} /> },
        {
          title: "Speed",
          kind: "number",
          cell: (run) => run.state !== "finished" && rate(run.docs_per_second),
        },
        {
          title: "Left",
          kind: "number",
          cell: (run) => run.left_ms !== undefined && duration(run.left_ms),
        },
      ]}
    />
  );
}

export function WorkState({ run }: { run: WorkSummary }) {
  return <State state={run.state} />;
}
