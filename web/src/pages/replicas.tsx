import { useLive, useNow } from "../api/live";
import type { Overview, ReplicaSummary } from "../api/types";
import { duration, short } from "../lib/format";
import { href } from "../lib/route";
import { Ago, Bad, Empty } from "../parts/bits";
import { Loaded } from "../parts/loading";
import { State } from "../parts/state";
import { Table } from "../parts/table";
import { overviewPath } from "../parts/top_bar";

export function ReplicasPage() {
  const topic = useLive<Overview>(overviewPath);
  const now = useNow();
  return (
    <>
      <h1>Replica sets</h1>
      <Loaded topic={topic}>
        {(data) => (
          <section class="panel" aria-label="Replica sets">
            {Object.keys(data.replica_sets).length ? (
              <ReplicaTable sets={Object.values(data.replica_sets)} now={now} />
            ) : (
              <Empty>
                No replica set has run here yet. Start one with <code>muster replica run FILE</code>
                .
              </Empty>
            )}
          </section>
        )}
      </Loaded>
    </>
  );
}

export function ReplicaTable({ sets, now }: { sets: ReplicaSummary[]; now: number }) {
  return (
    <Table
      rows={sets}
      rowKey={(set) => `${set.store}/${set.set}`}
      columns={[
        {
          title: "Set",
          cell: (set) => <a href={href(["replicas", set.store, set.set])}>{set.set}</a>,
        },
        {
          title: "Phase",
          cell: (set) => (
            <>
              <State state={set.phase} />
              {set.why && <span class="sub">{set.why}</span>}
            </>
          ),
        },
        { title: "Generation", kind: "number", cell: (set) => set.generation },
        {
          title: "Ready",
          kind: "number",
          cell: (set) => `${set.ready} of ${set.workers}`,
        },
        {
          title: "Behind",
          kind: "number",
          cell: (set) => set.lag_events !== undefined && short(set.lag_events),
        },
        {
          title: "By",
          kind: "number",
          cell: (set) => set.lag_ms !== undefined && duration(set.lag_ms),
        },
        { title: "Parked", kind: "number", cell: (set) => <Bad number={set.parked ?? 0} /> },
        {
          title: "Last change",
          kind: "words",
          cell: (set) => (
            <>
              {set.reason}
              {set.since_at !== undefined && (
                <span class="sub">
                  <Ago at={set.since_at} now={now} />
                </span>
              )}
            </>
          ),
        },
      ]}
    />
  );
}
