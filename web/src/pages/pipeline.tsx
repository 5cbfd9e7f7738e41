import type { WorkDetail } from "../api/types";
import { bytes, count, duration, percent, rate, short } from "../lib/format";
import { Bad, Bar, Empty, Panel } from "../parts/bits";
import { Chart } from "../parts/chart";
import { Table } from "../parts/table";

// How fast documents move: throughput, latency of bulk writes, rejects; and by which workers.
export function Pipeline({ work }: { work: WorkDetail }) {
  const { series } = work;
  const none = <Empty>Numbers are collected from now on.</Empty>;
  const enough = series.at.length > 1;
  const latency = series.write_p50_ms && series.write_p99_ms;
  const perSecond = (
    title: string,
    name: string,
    values: number[] | undefined,
    colour: string,
    format: (value: number) => string,
  ) => (
    <Panel title={title} note="a second">
      {enough ? (
        <Chart
          label={`${title} a second`}
          at={series.at}
          format={format}
          lines={[{ name, values: values ?? [], colour }]}
        />
      ) : (
        none
      )}
    </Panel>
  );
  return (
    <>
      <div class="columns">
        {perSecond("Documents", "documents/s", series.docs_per_second, "series-1", short)}
        {perSecond("Bytes", "bytes/s", series.bytes_per_second, "series-5", bytes)}
        <Panel
          title="Bulk latency"
          note={work.latency?.writes !== undefined && `${count(work.latency.writes)} writes`}
        >
          {latency && enough ? (
            <Chart
              label="Bulk latency"
              at={series.at}
              format={(value) => short(value) + " ms"}
              lines={[
                { name: "median", values: series.write_p50_ms ?? [], colour: "series-3" },
                { name: "p99", values: series.write_p99_ms ?? [], colour: "series-2" },
              ]}
            />
          ) : work.latency ? (
            <dl class="rows">
              <div>
                <dt>Mean</dt>
                <dd>{duration(work.latency.mean_ms ?? 0)}</dd>
              </div>
              <div>
                <dt>Median</dt>
                <dd>{duration(work.latency.p50_ms ?? 0)}</dd>
              </div>
              <div>
                <dt>99 % within</dt>
                <dd>{duration(work.latency.p99_ms ?? 0)}</dd>
              </div>
            </dl>
          ) : (
            <Empty>{work.why_no_latency ?? "It is not measured here."}</Empty>
          )}
        </Panel>
        {perSecond("Rejects", "rejected/s", series.failed_per_second, "series-6", short)}
      </div>
      <div class="columns">
        <Workers work={work} />
        <Collections work={work} />
      </div>
    </>
  );
}

function Workers({ work }: { work: WorkDetail }) {
  const workers = Object.entries(work.workers).sort(
    ([, a], [, b]) => b.docs_per_second - a.docs_per_second,
  );
  return (
    <Panel title="Workers" bare>
      {workers.length ? (
        <Table
          rows={workers}
          rowKey={([name]) => name}
          columns={[
            { title: "Worker", cell: ([name]) => name },
            { title: "Holds", kind: "number", cell: ([, worker]) => count(worker.items) },
            { title: "Speed", kind: "number", cell: ([, worker]) => rate(worker.docs_per_second) },
          ]}
        />
      ) : (
        <Empty>{work.why ?? "No worker holds an item."}</Empty>
      )}
    </Panel>
  );
}

function Collections({ work }: { work: WorkDetail }) {
  const collections = Object.entries(work.collections ?? {});
  if (!collections.length) return null;
  return (
    <Panel title="Collections" bare>
      <Table
        rows={collections}
        rowKey={([name]) => name}
        columns={[
          { title: "Collection", cell: ([name]) => name },
          {
            title: "Items",
            cell: ([, one]) => (
              <span class="nowrap">
                <Bar fraction={one.items ? one.done / one.items : 0} label="Items done" />{" "}
                <span class="muted">{percent(one.items ? one.done / one.items : 0)}</span>
              </span>
            ),
          },
          { title: "Read", kind: "number", cell: ([, one]) => short(one.counts.read) },
          {
            title: "Rejected",
            kind: "number",
            cell: ([, one]) => <Bad number={one.counts.failed} />,
          },
        ]}
      />
    </Panel>
  );
}
