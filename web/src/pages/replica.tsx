import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { apiPath } from "../api/client";
import { useLive, useNow } from "../api/live";
import type { Member, ReplicaSet } from "../api/types";
import { duration, exactTime, short, time } from "../lib/format";
import { href } from "../lib/route";
import { Actions } from "../parts/action";
import { Ago, Crumbs, Empty, Facts, Panel, Why } from "../parts/bits";
import { Loaded } from "../parts/loading";
import { SlotChart } from "../parts/slot_chart";
import { State } from "../parts/state";
import { Table } from "../parts/table";
import { Commands } from "./migration";
import { Projection } from "./projection";

export function ReplicaPage(props: { store: string; set: string; query: URLSearchParams }) {
  const { store, set } = props;
  const topic = useLive<ReplicaSet>(apiPath("stores", store, "replica-sets", set));
  return (
    <>
      <Crumbs steps={[["Replica sets", href(["replicas"])]]} />
      <Loaded topic={topic}>
        {(data) => <Set set={data} stream={props.query.get("stream") ?? ""} />}
      </Loaded>
    </>
  );
}

function Set({ set, stream }: { set: ReplicaSet; stream: string }) {
  const now = useNow();
  const members = Object.entries(set.members).sort(([a], [b]) => a.localeCompare(b));
  const projections = Object.entries(set.projections);
  return (
    <>
      <div class="head">
        <div class="grow">
          <h1>{set.set}</h1>
          {set.strategy && <p class="muted">strategy {set.strategy}</p>}
        </div>
        <Scale set={set} />
      </div>
      <Why state={set.phase} why={set.why} />
      <Facts
        facts={[
          ["Phase", <State state={set.phase} />],
          ["Generation", set.generation],
          [
            "Ready",
            <>
              {set.ready}{" "}
              <small>of {members.filter(([, one]) => one.slots > 0).length} with a part</small>
            </>,
          ],
          [
            "Partitions",
            <>
              {set.partitions} <small>over {set.slots} slots</small>
            </>,
          ],
          ["Since", set.since_at === undefined ? "unknown" : <Ago at={set.since_at} now={now} />],
          ["Why this generation", set.reason ?? "none yet"],
        ]}
      />
      {set.why_no_lag && <Why state="waiting" why={set.why_no_lag} />}
      <Panel title="Workers and slots" end={<SlotLegend />}>
        {members.length ? (
          <SlotChart
            slots={set.slots}
            assignment={set.assignment}
            workers={members.map(([id, member]) => ({
              id,
              name: member.name,
              note: noteOf(member),
              ready: member.ready,
              dead: member.phase === "dead",
            }))}
            projections={projections
              .filter(([, one]) => one.slot_lag)
              .map(([key, one]) => ({
                key,
                lag: one.slot_lag ?? [],
                lagMs: one.slot_lag_ms ?? [],
              }))}
          />
        ) : (
          <Empty>No worker has joined yet.</Empty>
        )}
      </Panel>
      <Members members={members} generation={set.generation} now={now} />
      {projections.map(([key, projection]) => (
        <Projection key={key} name={key} set={set} projection={projection} stream={stream} />
      ))}
      <Panel title="Last transitions" bare>
        {set.transitions.length ? (
          <ol class="log" tabIndex={0} aria-label="Last transitions">
            {[...set.transitions].reverse().map((one, index) => (
              <li key={index}>
                <time title={exactTime(one.at)}>{time(one.at, now)}</time>
                <span class="level">
                  {one.generation !== undefined && `gen. ${one.generation}`}
                </span>
                <span>
                  {one.what}
                  {one.cause && <span class="muted">: {one.cause}</span>}
                </span>
              </li>
            ))}
          </ol>
        ) : (
          <Empty>No transitions since the server started.</Empty>
        )}
      </Panel>
      <Panel title="The same on the command line">
        <Commands commands={set.commands} />
      </Panel>
    </>
  );
}

function SlotLegend() {
  return (
    <span class="legend">
      <span>
        <i class="swatch owned" />
        owned
      </span>
      <span>
        <i class="swatch unready" />
        owner not ready
      </span>
      <span class="heat-scale">
        {[0, 1, 2, 3, 4, 5].map((step) => (
          <i key={step} class={"swatch heat-" + step} />
        ))}
        0 to 10,000 events behind
      </span>
    </span>
  );
}

function noteOf(member: Member): string {
  if (member.why) return member.why;
  return member.ready ? "ready" : "not ready";
}

// Limits the number of workers that get a partition.
function Scale({ set }: { set: ReplicaSet }) {
  const [workers, setWorkers] = useState(set.scale === undefined ? "" : String(set.scale));
  const scale = set.actions["scale"];
  if (!scale) return null;
  const body = Number(workers) > 0 ? { workers: Number(workers) } : {};
  return (
    <div class="buttons">
      <input
        type="number"
        min="1"
        placeholder="all workers"
        aria-label="Maximum number of workers"
        value={workers}
        onInput={(event) => setWorkers(event.currentTarget.value)}
      />
      <Actions actions={{ scale: { ...scale, body } }} of={set.set} />
    </div>
  );
}

function heartbeatOf(member: Member, now: number): ComponentChildren {
  if (member.heartbeat_due_at === undefined || member.phase === "dead") return "";
  const left = member.heartbeat_due_at - now;
  return left < -1000 ? (
    <span class="failed">overdue {duration(left)}</span>
  ) : (
    duration(Math.max(0, left))
  );
}

function Members(props: { members: [string, Member][]; generation: number; now: number }) {
  return (
    <Panel title="Workers" bare>
      <Table
        rows={props.members}
        rowKey={([id]) => id}
        columns={[
          { title: "Worker", cell: ([, member]) => member.name },
          {
            title: "Phase",
            cell: ([, member]) => (
              <>
                <State state={member.phase} as={member.phase === "ready" ? "done" : undefined} />
                {(member.why || member.error) && (
                  <span class="sub">
                    {member.why} {member.error}
                  </span>
                )}
              </>
            ),
          },
          {
            title: "Ready",
            cell: ([, member]) => (member.ready ? "yes" : <span class="backoff">no</span>),
          },
          {
            title: "Generation",
            kind: "number",
            cell: ([, { generation }]) =>
              generation < props.generation ? `${generation} of ${props.generation}` : generation,
          },
          { title: "Slots", kind: "number", cell: ([, member]) => member.slots },
          { title: "Handled", kind: "number", cell: ([, member]) => short(member.handled) },
          {
            title: "Paused for",
            kind: "number",
            cell: ([, member]) => member.pause_ms !== undefined && duration(member.pause_ms),
          },
          {
            title: "Heartbeat due in",
            kind: "number",
            cell: ([, member]) => heartbeatOf(member, props.now),
          },
        ]}
      />
    </Panel>
  );
}
