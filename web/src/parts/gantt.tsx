import { useRef } from "preact/hooks";
import { tickLabel, ticks } from "../lib/axis";
import { duration, time } from "../lib/format";
import { useWidth } from "../lib/size";
import { look } from "./state";

export interface GanttAttempt {
  number: number;
  start: number;
  end: number | undefined; // undefined: it runs
  state: string;
  error: string;
  backoffUntil: number | undefined;
}

export interface GanttRow {
  key: string;
  name: string;
  note: string;
  state: string;
  why: string;
  critical: boolean;
  href: string;
  attempts: GanttAttempt[];
}

const rowHeight = 24;
const axisHeight = 26;

// A bar for each attempt; between attempts, the pause before the next is a dashed line. Time runs from
// the beginning of the run to now.
export function Gantt(props: { rows: GanttRow[]; from: number; to: number; now: number }) {
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  const labels = width < 640 ? Math.min(150, width * 0.4) : 250;
  const span = Math.max(1000, props.to - props.from);
  const plot = Math.max(80, width - labels - 12);
  const x = (at: number) => labels + ((at - props.from) / span) * plot;
  const height = axisHeight + props.rows.length * rowHeight + 4;
  return (
    <div ref={box} class="gantt">
      {width > 0 && (
        <svg width={width} height={height} role="group" aria-label="Attempts over time">
          <g class="axis" aria-hidden="true">
            {ticks(span, plot / 90).map((at) => (
              <g key={at}>
                <line
                  x1={x(props.from + at)}
                  x2={x(props.from + at)}
                  y1={axisHeight - 6}
                  y2={height}
                />
                <text x={x(props.from + at)} y="13">
                  {tickLabel(at)}
                </text>
              </g>
            ))}
          </g>
          {props.rows.map((row, index) => (
            <Row
              key={row.key}
              row={row}
              y={axisHeight + index * rowHeight}
              labels={labels}
              width={width}
              x={x}
              now={props.now}
            />
          ))}
          {props.now <= props.to && props.now >= props.from && (
            <line class="now" x1={x(props.now)} x2={x(props.now)} y1={axisHeight - 6} y2={height} />
          )}
        </svg>
      )}
    </div>
  );
}

function Row(props: {
  row: GanttRow;
  y: number;
  labels: number;
  width: number;
  x: (at: number) => number;
  now: number;
}) {
  const { row, y, x } = props;
  const middle = y + rowHeight / 2;
  const letters = Math.floor((props.labels - 30) / 7.2);
  const last = row.attempts.at(-1);
  const label =
    `${row.name}: ${row.state}` +
    (row.attempts.length > 1 ? `, ${row.attempts.length} attempts` : "") +
    (row.why ? `, ${row.why}` : "") +
    (row.critical ? ", on the critical path" : "");
  return (
    <g class={"row " + look(row.state)}>
      <a href={row.href} aria-label={label}>
        <title>{label}</title>
        <rect class="stripe" x="0" y={y} width={props.width} height={rowHeight} />
        <circle class="dot" cx="9" cy={middle} r="4" />
        {row.attempts.map((attempt) => (
          <Bars
            key={attempt.number}
            attempt={attempt}
            y={y}
            x={x}
            now={props.now}
            critical={row.critical}
          />
        ))}
      </a>
      <g class="writing" aria-hidden="true">
        <text class={row.critical ? "label critical" : "label"} x="20" y={middle + 4}>
          {row.name.length > letters ? row.name.slice(0, letters - 1) + "…" : row.name}
        </text>
        {!last && (
          <text class="note" x={props.labels + 4} y={middle + 4}>
            {row.why}
          </text>
        )}
        {last && (
          <text
            class="note"
            x={Math.min(x(last.backoffUntil ?? last.end ?? props.now) + 6, props.width - 60)}
            y={middle + 4}
          >
            {row.note}
          </text>
        )}
      </g>
    </g>
  );
}

// An attempt, and the pause after it.
function Bars(props: {
  attempt: GanttAttempt;
  y: number;
  x: (at: number) => number;
  now: number;
  critical: boolean;
}) {
  const { attempt, y, x, now } = props;
  const end = attempt.end ?? now;
  const middle = y + rowHeight / 2;
  return (
    <>
      {attempt.backoffUntil !== undefined && (
        <line
          class="pause"
          x1={x(end)}
          x2={Math.max(x(end) + 3, x(attempt.backoffUntil))}
          y1={middle}
          y2={middle}
        >
          <title>{`pauses ${duration(attempt.backoffUntil - end)} before the next attempt`}</title>
        </line>
      )}
      <rect
        class={"attempt " + look(attempt.state) + (props.critical ? " critical" : "")}
        x={x(attempt.start)}
        y={y + 5}
        width={Math.max(3, x(end) - x(attempt.start))}
        height={rowHeight - 10}
        rx="3"
      >
        <title>
          {`attempt ${attempt.number}: ${attempt.state}, ${time(attempt.start, now)}, ` +
            duration(end - attempt.start) +
            (attempt.error ? `: ${attempt.error}` : "")}
        </title>
      </rect>
    </>
  );
}
