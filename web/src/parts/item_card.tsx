import { count, duration, rate } from "../lib/format";
import type { ItemView } from "../lib/items";
import { State } from "./state";

export function progressOf(item: ItemView): string {
  if (item.state === "done") return "100 %";
  return item.percent < 0 ? "unknown" : `${item.percent} %`;
}

// What the item's due time means: the lease's end, or the next try.
export function dueOf(item: ItemView, now: number): string {
  if (!item.due) return "";
  const left = Math.max(0, item.due - now);
  if (item.state === "held") return `lease ${duration(left)} left`;
  if (item.state === "backoff") return `retry in ${duration(left)}`;
  return "";
}

export function whyOf(item: ItemView): string {
  if (item.state === "waiting")
    return item.holder ? "its holder is gone; waiting for a worker" : "waiting for a worker";
  if (item.state === "quarantined") return `quarantined after ${count(item.attempt)} attempts`;
  if (item.state === "unreadable") return "its record is damaged";
  return "";
}

export function describeItem(item: ItemView, now: number): string {
  return [
    item.name,
    item.state,
    progressOf(item),
    item.holder && `held by ${item.holder}`,
    dueOf(item, now),
    whyOf(item),
    item.attempt > 1 && `attempt ${item.attempt}`,
    item.fenced > 0 && `fenced ${item.fenced} times`,
  ]
    .filter(Boolean)
    .join(", ");
}

// The item under the pointer on the map.
export function ItemCard({ item, now }: { item: ItemView; now: number }) {
  return (
    <>
      <strong class="mono">{item.name}</strong>
      <div>
        <State state={item.state} /> {progressOf(item)}
      </div>
      {item.holder && (
        <div>
          {item.state === "held" ? "held by" : "last held by"} {item.holder}
        </div>
      )}
      <div class="muted">{dueOf(item, now) || whyOf(item)}</div>
      <div class="muted">
        {count(item.read)} read, {count(item.failed)} rejected
        {item.speed > 0 && `, ${rate(item.speed)}`}
      </div>
      <div class="muted">
        attempt {item.attempt}, claimed {item.epoch}×{item.fenced > 0 && `, fenced ${item.fenced}×`}
      </div>
    </>
  );
}
