import { useRef, useState } from "preact/hooks";
import { count, rate, short } from "../lib/format";
import type { ItemView } from "../lib/items";
import { dueOf, progressOf, whyOf } from "./item_card";
import { State } from "./state";

const rowHeight = 32;
const view = 560;
const step = 16; // rows are rendered in steps of this many, not at every pixel scrolled

const columns = [
  "Item",
  "State",
  "Done",
  "Holder",
  "Lease or reason",
  "Read",
  "Rejected",
  "Speed",
  "Attempt",
  "Fenced",
];

// The same as the map, as text. Only the visible rows are rendered.
export function ItemList(props: {
  names: string[];
  item: (name: string) => ItemView;
  now: number;
  chosen: string;
  onChoose: (name: string) => void;
}) {
  const box = useRef<HTMLDivElement>(null);
  const [turn, setTurn] = useState(0);
  const first = Math.max(0, (turn - 1) * step);
  const rows = props.names.slice(first, (turn + 2) * step + Math.ceil(view / rowHeight));
  return (
    <div
      ref={box}
      class="item-list"
      role="table"
      aria-label="Items"
      aria-rowcount={props.names.length + 1}
      tabIndex={0}
      onScroll={(event) => setTurn(Math.floor(event.currentTarget.scrollTop / rowHeight / step))}
    >
      <div role="row" class="item-row heading" aria-rowindex={1}>
        {columns.map((name) => (
          <span key={name} role="columnheader">
            {name}
          </span>
        ))}
      </div>
      <div
        class="item-rows"
        role="rowgroup"
        style={{ height: `${props.names.length * rowHeight}px` }}
      >
        <div role="presentation" style={{ transform: `translateY(${first * rowHeight}px)` }}>
          {rows.map((name, index) => (
            <ItemRow
              key={name}
              index={first + index}
              item={props.item(name)}
              now={props.now}
              chosen={name === props.chosen}
              onChoose={props.onChoose}
            />
          ))}
        </div>
      </div>
    </div>
  );
}

function ItemRow(props: {
  index: number;
  item: ItemView;
  now: number;
  chosen: boolean;
  onChoose: (name: string) => void;
}) {
  const { item } = props;
  return (
    <div
      role="row"
      class={props.chosen ? "item-row chosen" : "item-row"}
      aria-rowindex={props.index + 2}
    >
      <span role="cell" class="mono">
        <button class="link" onClick={() => props.onChoose(item.name)}>
          {item.name}
        </button>
      </span>
      <span role="cell">
        <State state={item.state} />
      </span>
      <span role="cell">{progressOf(item)}</span>
      <span role="cell">{item.holder}</span>
      <span role="cell" class="muted">
        {dueOf(item, props.now) || whyOf(item)}
      </span>
      <span role="cell">{short(item.read)}</span>
      <span role="cell" class={item.failed ? "failed" : ""}>
        {count(item.failed)}
      </span>
      <span role="cell">{item.speed ? rate(item.speed) : ""}</span>
      <span role="cell">{item.attempt}</span>
      <span role="cell">{item.fenced || ""}</span>
    </div>
  );
}
