import { useRef, useState } from "preact/hooks";
import { count, duration } from "../lib/format";
import { useWidth } from "../lib/size";

// Slots from left to right. Above, the owner of each: one row per worker. Below, the lag of each
// projection in it. A column is a slot.

export interface SlotWorker {
  id: string;
  name: string;
  note: string;
  ready: boolean;
  dead: boolean;
}

export interface SlotLag {
  key: string;
  lag: number[]; // events, by slot
  lagMs: number[];
}

const row = 22;
const gap = 10;

export function SlotChart(props: {
  slots: number;
  workers: SlotWorker[];
  assignment: string[];
  projections: SlotLag[];
}) {
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  const [under, setUnder] = useState(-1);
  const labels = width < 640 ? 108 : 190;
  const pitch = Math.max(1, (width - labels) / Math.max(1, props.slots));
  const size = Math.max(1, pitch - (pitch > 4 ? 1 : 0));
  const lagTop =
    props.workers.length * row + (props.workers.length && props.projections.length ? gap : 0);
  const height = lagTop + props.projections.length * row + 18;
  const letters = Math.floor((labels - 16) / 7);
  const slots = Array.from({ length: props.slots }, (_, slot) => slot);
  return (
    <div
      ref={box}
      class="slot-chart"
      onMouseLeave={() => setUnder(-1)}
      onMouseMove={(event) => {
        const x = event.clientX - (box.current?.getBoundingClientRect().left ?? 0) - labels;
        setUnder(x < 0 ? -1 : Math.min(props.slots - 1, Math.floor(x / pitch)));
      }}
    >
      {width > 0 && (
        <svg width={width} height={height} role="img" aria-label={describe(props)}>
          <defs>
            <pattern
              id="not-ready"
              width="6"
              height="6"
              patternUnits="userSpaceOnUse"
              patternTransform="rotate(45)"
            >
              <rect class="hatch-ground" width="6" height="6" />
              <rect class="hatch-line" width="3" height="6" />
            </pattern>
          </defs>
          {props.workers.map((worker, index) => (
            <g key={worker.id} class={worker.dead ? "gone" : worker.ready ? "ready" : "unready"}>
              <text class="label" x="0" y={index * row + 15}>
                {clip(worker.name, letters)}
              </text>
              <rect
                class="track"
                x={labels}
                y={index * row + 2}
                width={Math.max(0, width - labels)}
                height={row - 4}
              />
              {slots.map(
                (slot) =>
                  props.assignment[slot] === worker.id && (
                    <rect
                      key={slot}
                      class="owned"
                      x={labels + slot * pitch}
                      y={index * row + 2}
                      width={size}
                      height={row - 4}
                    />
                  ),
              )}
            </g>
          ))}
          {props.projections.map((projection, index) => (
            <g key={projection.key}>
              <text class="label" x="0" y={lagTop + index * row + 15}>
                {clip(projection.key + " lag", letters)}
              </text>
              {slots.map((slot) => (
                <rect
                  key={slot}
                  class={"heat-" + heat(projection.lag[slot] ?? 0)}
                  x={labels + slot * pitch}
                  y={lagTop + index * row + 2}
                  width={size}
                  height={row - 4}
                />
              ))}
            </g>
          ))}
          <g class="axis">
            {slots
              .filter((slot) => slot % Math.max(1, Math.round(props.slots / 8)) === 0)
              .map((slot) => (
                <text key={slot} x={labels + slot * pitch} y={height - 4}>
                  {slot}
                </text>
              ))}
          </g>
          {under >= 0 && (
            <rect
              class="cursor"
              x={labels + under * pitch - 1}
              y="0"
              width={size + 2}
              height={height - 16}
            />
          )}
        </svg>
      )}
      <p class="muted slot-note">
        {under >= 0 ? describeSlot(props, under) : "Point at a slot for details."}
      </p>
    </div>
  );
}

// A few events behind don't matter; the scale grows by powers of ten.
export function heat(lag: number): number {
  if (lag <= 0) return 0;
  return Math.min(5, 1 + Math.floor(Math.log10(lag)));
}

function describeSlot(props: Parameters<typeof SlotChart>[0], slot: number): string {
  const owner = props.workers.find((worker) => worker.id === props.assignment[slot]);
  const lags = props.projections.map(
    ({ key, lag, lagMs }) =>
      `${key} ${count(lag[slot] ?? 0)} events${lagMs[slot] ? ` (${duration(lagMs[slot] ?? 0)})` : ""} behind`,
  );
  return [`Slot ${slot}: ${owner ? `owned by ${owner.name}` : "no owner"}`, ...lags].join("; ");
}

function describe(props: Parameters<typeof SlotChart>[0]): string {
  const owned = props.workers.map(
    ({ id, name, note }) =>
      `${name} owns ${props.assignment.filter((owner) => owner === id).length} slots, ${note}`,
  );
  const worst = props.projections.map(
    ({ key, lag }) => `${key} is at most ${count(Math.max(0, ...lag))} events behind in a slot`,
  );
  return [...owned, ...worst].join("; ");
}

function clip(text: string, most: number): string {
  return text.length > most ? text.slice(0, most - 1) + "…" : text;
}
