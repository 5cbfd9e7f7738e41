import type { ComponentChildren } from "preact";
import { apiPath } from "../api/client";
import { useLive, useNow } from "../api/live";
import type { Migration, Rank, RunAttempt, Task } from "../api/types";
import { count, duration, exactTime, rate } from "../lib/format";
import { href, setFilters } from "../lib/route";
import { Actions } from "../parts/action";
import { Ago, Chips, Command, Crumbs, Empty, Facts, Panel, Why } from "../parts/bits";
import { Gantt, type GanttRow } from "../parts/gantt";
import { Loaded } from "../parts/loading";
import { RankGraph, type RankNode } from "../parts/rank_graph";
import { State } from "../parts/state";
import { Table } from "../parts/table";
import { RunState } from "./overview";

type TaskFilter = "" | "critical" | "failed" | "running" | "waiting";

export function MigrationPage(props: { store: string; migration: string; query: URLSearchParams }) {
  const topic = useLive<Migration>(apiPath("stores", props.store, "migrations", props.migration));
  return (
    <>
      <Crumbs steps={[["Migrations", href([])]]} />
      <Loaded topic={topic}>{(run) => <Run run={run} query={props.query} />}</Loaded>
    </>
  );
}

function Run({ run, query }: { run: Migration; query: URLSearchParams }) {
  const now = useNow();
  const ranks = Object.values(run.ranks).sort((a, b) => a.rank - b.rank);
  const rank = query.has("rank") ? Number(query.get("rank")) : undefined;
  const filter = (query.get("tasks") ?? "") as TaskFilter;
  const critical = new Set(run.critical_path);
  const rows = ranks
    .filter((one) => rank === undefined || one.rank === rank)
    .flatMap((one) => Object.entries(one.tasks).sort(byPhase))
    .filter(([key, task]) => fits(task, critical.has(key), filter))
    .map(([key, task]) => ganttRow(run, key, task, critical.has(key), now));
  const end = run.ended_at ?? Math.max(now, run.expected_end_at ?? 0);
  return (
    <>
      <div class="head">
        <div class="grow">
          <h1>{run.migration}</h1>
          <p class="muted">
            {run.plan} for {run.tenant}
          </p>
        </div>
        <Actions actions={run.actions} of={run.migration} />
      </div>
      <Why state={run.status} why={run.why}>
        {run.error && !run.why?.includes(run.error) && (
          <>
            <strong>{run.error}</strong> {run.cause}
          </>
        )}
      </Why>
      <Facts facts={factsOf(run, now)} />
      {run.why_no_ranks && <Why state="waiting" why={run.why_no_ranks} />}
      {ranks.length > 0 && (
        <Panel
          title="Ranks"
          note="the critical path is drawn bold"
          end={
            rank !== undefined && (
              <button class="plain" onClick={() => setFilters({ rank: "" })}>
                Show all
              </button>
            )
          }
        >
          <RankGraph
            ranks={ranks.map((one) => rankNode(one, critical, now))}
            chosen={rank}
            onChoose={(chosen) => setFilters({ rank: chosen })}
          />
        </Panel>
      )}
      {ranks.length > 0 && (
        <Panel
          title={rank === undefined ? "Tasks" : `Tasks of rank ${rank}`}
          end={
            <Chips<TaskFilter>
              label="Filter tasks"
              value={filter}
              onChange={(value) => setFilters({ tasks: value })}
              choices={[
                ["", "All"],
                ["critical", "Critical path"],
                ["running", "Running"],
                ["waiting", "Waiting"],
                ["failed", "Failed"],
              ]}
            />
          }
        >
          {rows.length ? (
            <Gantt rows={rows} from={run.started_at} to={end} now={now} />
          ) : (
            <Empty>No matching tasks.</Empty>
          )}
          <div class="legend">
            <span>
              <i class="swatch done" />
              succeeded
            </span>
            <span>
              <i class="swatch running" />
              running
            </span>
            <span>
              <i class="swatch failed" />
              failed attempt
            </span>
            <span>
              <i class="swatch pause" />
              pause before the next attempt
            </span>
            <span>
              <i class="swatch critical" />
              on the critical path
            </span>
            <span>↓ extract</span>
            <span>→ transform</span>
          </div>
        </Panel>
      )}
      {run.attempts.length > 1 && (
        <Panel title="Attempts">
          <Attempts attempts={run.attempts} now={now} />
        </Panel>
      )}
      <Panel title="The same on the command line">
        <Commands commands={run.commands} />
      </Panel>
    </>
  );
}

function Attempts({ attempts, now }: { attempts: RunAttempt[]; now: number }) {
  return (
    <Table
      rows={[...attempts].reverse()}
      rowKey={(one) => String(one.attempt)}
      columns={[
        { title: "Attempt", kind: "number", cell: (one) => one.attempt },
        { title: "Status", cell: (one) => <State state={one.status} /> },
        {
          title: "Began",
          cell: (one) => one.started_at !== undefined && <Ago at={one.started_at} now={now} />,
        },
        {
          title: "Time",
          kind: "number",
          cell: (one) =>
            one.started_at !== undefined && duration((one.ended_at ?? now) - one.started_at),
        },
        { title: "What it did", kind: "words", cell: didOf },
        {
          title: "Why it ended",
          kind: "words",
          cell: (one) => [one.error, one.cause].filter(Boolean).join(": "),
        },
      ]}
    />
  );
}

function didOf(attempt: RunAttempt): string {
  const done = attempt.tasks.filter((task) => task.status === "SUCCEEDED").length;
  const others = attempt.tasks
    .filter((task) => task.status !== "SUCCEEDED")
    .map((task) => `${task.phase}/${task.task} ${task.status.toLowerCase()}`);
  const again = attempt.done_again.length ? ["done again: " + attempt.done_again.join(", ")] : [];
  return [`${done} ${done === 1 ? "task" : "tasks"} done`, ...others, ...again].join("; ");
}

export function Commands({ commands }: { commands: { what: string; command: string }[] }) {
  return (
    <div class="commands">
      {commands.map(({ what, command }) => (
        <div key={command}>
          <h3>{what}</h3>
          <Command text={command} />
        </div>
      ))}
    </div>
  );
}

function factsOf(run: Migration, now: number): [string, ComponentChildren][] {
  const { total = 0, succeeded = 0, failed = 0, running = 0, backoff = 0, waiting = 0 } = run.tasks;
  const list: [string, ComponentChildren][] = [
    ["Status", <RunState run={run} />],
    [
      "Tasks done",
      <>
        {succeeded} <small>of {total}</small>
      </>,
    ],
    ["Running", running],
    ["Waiting", waiting + backoff],
    ["Failed", failed ? <span class="failed">{failed}</span> : 0],
    ["Began", <Ago at={run.started_at} now={now} />],
  ];
  if (run.ended_at !== undefined) list.push(["Took", duration(run.ended_at - run.started_at)]);
  else if (run.expected_end_at !== undefined && run.expected_end_at > now) {
    list.push([
      "Done in",
      <span title={exactTime(run.expected_end_at)}>{duration(run.expected_end_at - now)}</span>,
    ]);
  }
  const rows = Object.values(run.ranks).filter((one) => one.rows !== undefined);
  if (rows.length) {
    const sum = (of: (one: Rank) => number | undefined) =>
      rows.reduce((all, one) => all + (of(one) ?? 0), 0);
    list.push([
      "Rows in progress",
      <>
        {count(sum((one) => one.rows))} <small>of {count(sum((one) => one.expected_rows))}</small>
      </>,
    ]);
    list.push(["Rate", rate(sum((one) => one.rows_per_second))]);
  }
  if (run.attempt > 1) list.push(["Attempt", run.attempt]);
  list.push(["Profile", run.profile]);
  return list;
}

function rankNode(rank: Rank, critical: Set<string>, now: number): RankNode {
  const tasks = Object.entries(rank.tasks);
  return {
    rank: rank.rank,
    name: rank.name ?? "",
    needs: rank.needs,
    state: rank.status,
    why: rank.why ?? "",
    done: tasks.filter(([, task]) => task.status === "succeeded").length,
    total: tasks.length,
    critical: tasks.some(([key]) => critical.has(key)),
    time: rank.external
      ? "done elsewhere"
      : rank.started_at === undefined
        ? rank.status
        : duration((rank.ended_at ?? now) - rank.started_at),
  };
}

function byPhase([, a]: [string, Task], [, b]: [string, Task]): number {
  return a.phase === b.phase ? a.task.localeCompare(b.task) : a.phase === "extract" ? -1 : 1;
}

function fits(task: Task, critical: boolean, filter: TaskFilter): boolean {
  switch (filter) {
    case "critical":
      return critical;
    case "failed":
      return task.status === "failed" || task.attempts.some((one) => one.status === "failed");
    case "running":
      return task.status === "running" || task.status === "backoff";
    case "waiting":
      return task.status === "waiting" || task.status === "backoff";
    default:
      return true;
  }
}

function ganttRow(
  run: Migration,
  key: string,
  task: Task,
  critical: boolean,
  now: number,
): GanttRow {
  const last = task.attempts.at(-1);
  const spent = last ? (last.ended_at ?? now) - last.started_at : 0;
  const note =
    task.status === "backoff" && task.next_try_at !== undefined
      ? "again in " + duration(Math.max(0, task.next_try_at - now))
      : task.earlier
        ? "kept"
        : last
          ? duration(spent)
          : "";
  return {
    key,
    name: `${task.rank} ${task.phase === "extract" ? "↓" : "→"} ${task.task}`,
    note,
    state: task.status,
    why: task.why ?? "",
    critical,
    href: href(["migrations", run.store, run.migration, task.phase, task.task]),
    attempts: task.attempts.map((attempt, index) => ({
      number: index + 1,
      start: attempt.started_at,
      end: attempt.ended_at,
      state: attempt.status,
      error: attempt.error ?? "",
      backoffUntil: attempt.backoff_until_at,
    })),
  };
}
