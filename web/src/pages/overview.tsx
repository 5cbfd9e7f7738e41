import type { ComponentChildren } from "preact";
import { useLive, useNow } from "../api/live";
import type { FailureGroup, MigrationSummary, Overview } from "../api/types";
import { count, duration, plural, rate, short } from "../lib/format";
import { href, setFilters } from "../lib/route";
import { Ago, Bar, Chips, Empty, Facts, Panel } from "../parts/bits";
import { Loaded } from "../parts/loading";
import { Shape, State } from "../parts/state";
import { Table } from "../parts/table";
import { overviewPath } from "../parts/top_bar";
import { ReplicaTable } from "./replicas";
import { WorkTable } from "./work";

type StatusFilter = "" | MigrationSummary["status"];

// The first page: what is happening in all stores, and what needs attention.
export function OverviewPage({ query }: { query: URLSearchParams }) {
  const topic = useLive<Overview>(overviewPath);
  return (
    <>
      <h1>Migrations</h1>
      <Loaded topic={topic}>{(data) => <Everything data={data} query={query} />}</Loaded>
    </>
  );
}

function Everything({ data, query }: { data: Overview; query: URLSearchParams }) {
  const now = useNow();
  const all = Object.values(data.migrations).sort(byUrgency);
  const text = (query.get("q") ?? "").toLowerCase();
  const status = (query.get("status") ?? "") as StatusFilter;
  const tenant = query.get("tenant") ?? "";
  const shown = all.filter(
    (one) =>
      (!status || one.status === status) &&
      (!tenant || one.tenant === tenant) &&
      (!text || `${one.migration} ${one.tenant} ${one.plan}`.toLowerCase().includes(text)),
  );
  const tenants = [...new Set(all.map((one) => one.tenant))].sort();
  const work = Object.values(data.work);
  const sets = Object.values(data.replica_sets);
  const failures = Object.values(data.failures).sort(byWeight);
  return (
    <>
      <Facts facts={facts(data, all)} />
      {Object.entries(data.stores)
        .filter(([, store]) => !store.reachable)
        .map(([number, store]) => (
          <p key={number} class="why failed" role="alert">
            <span>
              The store <code>{store.url}</code> cannot be reached: {store.why}
            </span>
          </p>
        ))}
      {failures.length > 0 && <Attention failures={failures} />}
      <section class="panel" aria-label="Migrations">
        <header>
          <div class="filters">
            <input
              type="search"
              placeholder="Migration, tenant or plan"
              aria-label="Filter migrations"
              value={query.get("q") ?? ""}
              onInput={(event) => setFilters({ q: event.currentTarget.value })}
            />
            <Chips<StatusFilter>
              label="Status"
              value={status}
              onChange={(value) => setFilters({ status: value })}
              choices={[
                ["", "All"],
                ["IN_PROGRESS", "In progress"],
                ["FAILED", "Failed"],
                ["COMPLETED", "Completed"],
                ["CANCELLED", "Cancelled"],
              ]}
            />
            {tenants.length > 1 && (
              <select
                aria-label="Tenant"
                value={tenant}
                onChange={(event) => setFilters({ tenant: event.currentTarget.value })}
              >
                <option value="">All tenants</option>
                {tenants.map((name) => (
                  <option key={name} value={name}>
                    {name}
                  </option>
                ))}
              </select>
            )}
          </div>
          <span class="end muted">
            {shown.length === all.length
              ? plural(all.length, "migration")
              : `${count(shown.length)} of ${plural(all.length, "migration")}`}
            {data.truncated && ", the rest is left out"}
          </span>
        </header>
        {shown.length ? (
          <MigrationTable migrations={shown} now={now} />
        ) : all.length ? (
          <Empty>No matching migrations.</Empty>
        ) : (
          <Empty>
            No plan has run here yet. Start one with <code>muster run plan.yaml</code>.
          </Empty>
        )}
      </section>
      {work.length > 0 && (
        <Panel title="Work shared among workers" bare end={<a href={href(["work"])}>All work</a>}>
          <WorkTable runs={work.slice(0, 5)} />
        </Panel>
      )}
      {sets.length > 0 && (
        <Panel title="Replica sets" bare end={<a href={href(["replicas"])}>All sets</a>}>
          <ReplicaTable sets={sets.slice(0, 5)} now={now} />
        </Panel>
      )}
    </>
  );
}

function facts(data: Overview, all: MigrationSummary[]): [string, ComponentChildren][] {
  const work = Object.values(data.work);
  const sets = Object.values(data.replica_sets);
  const running = all.filter((one) => one.status === "IN_PROGRESS").length;
  const failed = all.filter((one) => one.status === "FAILED").length;
  const list: [string, ComponentChildren][] = [
    ["In progress", count(running)],
    ["Failed", failed ? <span class="failed">{count(failed)}</span> : "0"],
  ];
  if (work.length) {
    list.push(["Documents", rate(work.reduce((sum, run) => sum + run.docs_per_second, 0))]);
    const left = work.flatMap((run) => (run.left_ms === undefined ? [] : [run.left_ms]));
    if (left.length) list.push(["All work done in", duration(Math.max(...left))]);
  }
  if (sets.length) {
    list.push(["Events behind", short(sets.reduce((sum, set) => sum + (set.lag_events ?? 0), 0))]);
  }
  list.push(["Failures", count(data.failures_total)]);
  list.push(["Dead letters", count(data.dead_letters)]);
  return list;
}

function Attention({ failures }: { failures: FailureGroup[] }) {
  return (
    <Panel title="Needs attention" bare end={<a href={href(["failures"])}>All failures</a>}>
      <ul class="signatures">
        {failures.slice(0, 4).map((group) => (
          <li key={group.signature}>
            <a href={href(["failures"], { signature: group.signature })}>
              <Shape look="failed" />
              <span class="signature">{group.signature}</span>
              <span class="muted nowrap">{kindsOf(group)}</span>
            </a>
          </li>
        ))}
      </ul>
    </Panel>
  );
}

// A task that failed stops a migration; a document that was rejected does not.
const weight = ["dead_letter", "item", "stream", "worker", "task", "store"];

export function byWeight(a: FailureGroup, b: FailureGroup): number {
  const heaviest = (group: FailureGroup) =>
    Math.max(...Object.keys(group.kinds).map((kind) => weight.indexOf(kind)));
  return heaviest(b) - heaviest(a) || b.count - a.count;
}

export function kindsOf(group: FailureGroup): string {
  return Object.entries(group.kinds)
    .map(([kind, number]) => plural(number, kind.replaceAll("_", " ")))
    .join(", ");
}

const urgency: Record<string, number> = { FAILED: 1, IN_PROGRESS: 0, CANCELLED: 2, COMPLETED: 2 };

function byUrgency(a: MigrationSummary, b: MigrationSummary): number {
  return (urgency[a.status] ?? 2) - (urgency[b.status] ?? 2) || b.started_at - a.started_at;
}

function MigrationTable({ migrations, now }: { migrations: MigrationSummary[]; now: number }) {
  return (
    <Table
      rows={migrations}
      rowKey={(one) => `${one.store}/${one.migration}`}
      columns={[
        {
          title: "Migration",
          cell: (one) => (
            <>
              <a class="nowrap" href={href(["migrations", one.store, one.migration])}>
                {one.migration}
              </a>
              <span class="sub">{one.plan}</span>
            </>
          ),
        },
        { title: "Tenant", cell: (one) => <span class="nowrap">{one.tenant}</span> },
        { title: "Status", cell: (one) => <RunState run={one} /> },
        { title: "Tasks", cell: (one) => <TaskProgress migration={one} /> },
        { title: "Now", kind: "words", cell: nowOf },
        { title: "Began", cell: (one) => <Ago at={one.started_at} now={now} /> },
        { title: "Time", kind: "number", cell: (one) => timeOf(one, now) },
      ]}
    />
  );
}

// A run is in progress until it ends, whether or not a process is driving it.
export function RunState({ run }: { run: MigrationSummary }) {
  if (run.driven !== false) return <State state={run.status} />;
  return (
    <>
      <State state={run.status} as="waiting" /> <small>no process is driving it</small>
    </>
  );
}

function TaskProgress({ migration }: { migration: MigrationSummary }) {
  const { total = 0, succeeded = 0, failed = 0 } = migration.tasks;
  return (
    <span class="nowrap">
      <Bar fraction={total ? succeeded / total : 0} label="Tasks done" />{" "}
      <span class="muted">
        {succeeded}/{total}
      </span>
      {failed > 0 && <span class="failed"> {failed} failed</span>}
    </span>
  );
}

function nowOf(one: MigrationSummary): string {
  if (one.why) return one.why;
  if (one.current_ranks?.length) {
    return (one.current_ranks.length > 1 ? "ranks " : "rank ") + one.current_ranks.join(", ");
  }
  return "";
}

function timeOf(one: MigrationSummary, now: number): string {
  if (one.ended_at !== undefined) return duration(one.ended_at - one.started_at);
  if (one.expected_end_at !== undefined && one.expected_end_at > now) {
    return duration(one.expected_end_at - now) + " left";
  }
  return duration(now - one.started_at) + " so far";
}
