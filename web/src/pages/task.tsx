import type { ComponentChildren } from "preact";
import { apiPath } from "../api/client";
import { useLive, useNow } from "../api/live";
import type { Attempt, TaskDetail } from "../api/types";
import { count, duration, exactTime, time } from "../lib/format";
import { pretty } from "../lib/pretty";
import { href } from "../lib/route";
import { Actions } from "../parts/action";
import { Crumbs, Empty, Facts, Panel, Text, Why } from "../parts/bits";
import { Loaded } from "../parts/loading";
import { State } from "../parts/state";
import { Table } from "../parts/table";
import { Commands } from "./migration";

export function TaskPage(props: { store: string; migration: string; phase: string; task: string }) {
  const { store, migration, phase, task } = props;
  const topic = useLive<TaskDetail>(
    apiPath("stores", store, "migrations", migration, "tasks", phase, task),
  );
  return (
    <>
      <Crumbs
        steps={[
          ["Migrations", href([])],
          [migration, href(["migrations", store, migration])],
        ]}
      />
      <Loaded topic={topic}>{(data) => <Task task={data} />}</Loaded>
    </>
  );
}

function Task({ task }: { task: TaskDetail }) {
  const now = useNow();
  const facts: [string, ComponentChildren][] = [
    ["Status", <State state={task.status} />],
    [
      "Rank",
      <a href={href(["migrations", task.store, task.migration], { rank: task.rank })}>
        {task.rank}
      </a>,
    ],
    ["Phase", task.phase],
    [
      "Attempts",
      task.max_attempts ? (
        <>
          {task.attempts.length} <small>of {task.max_attempts}</small>
        </>
      ) : (
        task.attempts.length
      ),
    ],
  ];
  if (task.started_at !== undefined) {
    facts.push([
      task.ended_at === undefined ? "Running for" : "Took",
      duration((task.ended_at ?? now) - task.started_at),
    ]);
  }
  if (task.next_try_at !== undefined && task.next_try_at > now) {
    facts.push(["Next attempt in", duration(task.next_try_at - now)]);
  }
  if (task.rows !== undefined) {
    facts.push([
      "Rows",
      <>
        {count(task.rows)}
        {task.status !== "succeeded" && task.expected_rows !== undefined && (
          <small> of {count(task.expected_rows)}</small>
        )}
      </>,
    ]);
  }
  if (task.target) facts.push(["Loads", <code>{task.target}</code>]);
  if (task.reads?.length) facts.push(["Reads", task.reads.join(", ")]);
  return (
    <>
      <div class="head">
        <div class="grow">
          <h1>{task.task}</h1>
          {task.critical && <span class="tag critical">on the critical path</span>}
        </div>
        <Actions actions={task.actions} of={task.task} />
      </div>
      <Why state={task.status} why={task.why} />
      <Facts facts={facts} />
      {task.error && (
        <Panel title="Error">
          <p class="failed">
            <strong>{task.error}</strong>
          </p>
          {task.cause && <Text label="Cause" text={pretty(task.cause)} />}
          {task.likely_cause && (
            <p>
              {task.likely_cause}: {task.remedy}
            </p>
          )}
        </Panel>
      )}
      {task.attempts.length > 0 && <Attempts task={task} now={now} />}
      <div class="columns">
        <Panel title="Input">
          <Value label="Input" value={task.input} none="Not started yet." />
        </Panel>
        <Panel title="Output">
          <Value
            label="Output"
            value={task.output}
            none={task.status === "failed" ? "None: it failed." : "Not finished yet."}
          />
        </Panel>
      </div>
      <Panel title="Log" bare>
        {task.log.length ? (
          <ol class="log" tabIndex={0} aria-label="Log">
            {task.log.map((line, index) => (
              <li key={index} class={line.level ?? "info"}>
                <time title={exactTime(line.at)}>{time(line.at, now)}</time>
                <span class="level">{line.level ?? "info"}</span>
                <span>{line.text}</span>
              </li>
            ))}
          </ol>
        ) : (
          <Empty>Nothing is logged yet.</Empty>
        )}
      </Panel>
      <Panel title="The same on the command line">
        <Commands commands={task.commands} />
      </Panel>
    </>
  );
}

function Attempts({ task, now }: { task: TaskDetail; now: number }) {
  const pauseOf = (one: Attempt) =>
    one.backoff_until_at !== undefined &&
    duration(one.backoff_until_at - (one.ended_at ?? one.started_at));
  return (
    <Panel title="Attempts" bare>
      <Table
        rows={task.attempts.map((attempt, index) => ({ ...attempt, number: index + 1 }))}
        rowKey={(one) => one.number}
        columns={[
          { title: "Attempt", kind: "number", cell: (one) => one.number },
          { title: "Outcome", cell: (one) => <State state={one.status} /> },
          {
            title: "Began",
            cell: (one) => (
              <span title={exactTime(one.started_at)}>{time(one.started_at, now)}</span>
            ),
          },
          {
            title: "Took",
            kind: "number",
            cell: (one) => duration((one.ended_at ?? now) - one.started_at),
          },
          { title: "Pause after", kind: "number", cell: pauseOf },
          {
            title: "Error",
            kind: "words",
            cell: (one) => (
              <>
                {one.error}
                {one.cause && <span class="sub">{one.cause}</span>}
              </>
            ),
          },
        ]}
      />
    </Panel>
  );
}

function Value({ label, value, none }: { label: string; value: string | undefined; none: string }) {
  if (value === undefined) return <p class="muted">{none}</p>;
  return <Text label={label} text={pretty(value)} />;
}
