import { useEffect, useRef } from "preact/hooks";
import type { Action, ByKey, ProjectionInfo, ReplicaSet } from "../api/types";
import { count, duration, plural, short } from "../lib/format";
import { Actions } from "../parts/action";
import { Panel, Why } from "../parts/bits";
import { Chart } from "../parts/chart";
import { State } from "../parts/state";
import { Table } from "../parts/table";

// One projection of a set: how far behind it is, when it will have caught up, and what is parked.
export function Projection(props: {
  name: string;
  set: ReplicaSet;
  projection: ProjectionInfo;
  stream: string; // the parked stream in the address
}) {
  const { set, projection } = props;
  const series = projection.series;
  const parked = Object.entries(projection.parked ?? {});
  const box = useRef<HTMLDivElement>(null);
  useEffect(
    () => box.current?.querySelector("tr.chosen")?.scrollIntoView({ block: "center" }),
    [props.stream],
  );
  return (
    <Panel
      title={`Projection ${props.name}`}
      note={`version ${projection.version}${projection.active ? "" : ", not active"}`}
      end={<Actions actions={actionsOf(set, props.name)} of={props.name} />}
    >
      <div class="stack" ref={box}>
        <Why state="waiting" why={projection.why} />
        <dl class="facts bare">
          <div>
            <dt>State</dt>
            <dd>
              <State state={stateOf(set, projection)} />
            </dd>
          </div>
          {projection.handled !== undefined && (
            <div>
              <dt>Handled</dt>
              <dd>{short(projection.handled)}</dd>
            </div>
          )}
          {projection.lag_events !== undefined && (
            <div>
              <dt>Behind</dt>
              <dd>
                {short(projection.lag_events)} <small>events</small>
              </dd>
            </div>
          )}
          {projection.lag_ms !== undefined && (
            <div>
              <dt>By</dt>
              <dd>{duration(projection.lag_ms)}</dd>
            </div>
          )}
          <div>
            <dt>Caught up in</dt>
            <dd>{clearOf(projection)}</dd>
          </div>
          <div>
            <dt>Parked</dt>
            <dd>
              {parked.length ? <span class="failed">{plural(parked.length, "stream")}</span> : "0"}
            </dd>
          </div>
        </dl>
        {series && series.at.length > 1 && (
          <Chart
            label={`Lag of ${props.name}`}
            at={series.at}
            format={short}
            height={150}
            lines={[
              {
                name: "events behind",
                values: series.lag_events ?? [],
                colour: "series-2",
              },
            ]}
          />
        )}
        {parked.length > 0 && (
          <Table
            rows={parked.slice(0, 100)}
            rowKey={([stream]) => stream}
            chosen={([stream]) => stream === props.stream}
            columns={[
              { title: "Parked stream", cell: ([stream]) => <code>{stream}</code> },
              { title: "Events", kind: "number", cell: ([, one]) => count(one.events) },
              { title: "Slot", kind: "number", cell: ([, one]) => one.slot },
              {
                title: "Error",
                kind: "words",
                cell: ([, one]) => (
                  <>
                    {one.error}
                    {one.replay && <span class="sub">is being replayed</span>}
                  </>
                ),
              },
            ]}
          />
        )}
      </div>
    </Panel>
  );
}

function stateOf(set: ReplicaSet, projection: ProjectionInfo): string {
  if (projection.paused) return "paused";
  if (projection.why) return "waiting";
  return set.phase === "running" ? "running" : "waiting";
}

function clearOf(projection: ProjectionInfo): string {
  if (projection.lag_events === undefined) return "unknown";
  if (projection.lag_events === 0) return "caught up";
  if (projection.clear_ms === undefined) return "never at this rate";
  return duration(projection.clear_ms);
}

// The set's actions are named "pause NAME". Only one of pause and resume applies.
function actionsOf(set: ReplicaSet, name: string): ByKey<Action> {
  const actions: ByKey<Action> = {};
  for (const verb of ["pause", "resume", "replay"]) {
    const action = set.actions[`${verb} ${name}`];
    if (action && (action.allowed || verb === "replay")) actions[verb] = action;
  }
  return actions;
}
