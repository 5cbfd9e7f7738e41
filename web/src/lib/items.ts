import type { Items } from "../api/types";

// A run's items as the page needs them: in order, by collection, each field by its name.

export const itemStates = [
  "waiting",
  "held",
  "backoff",
  "done",
  "quarantined",
  "unreadable",
] as const;
export type ItemState = (typeof itemStates)[number];

export interface ItemView {
  name: string;
  state: ItemState;
  percent: number; // -1: unknown
  holder: string; // empty: not held
  due: number; // the lease's end or the next try; 0: none
  attempt: number;
  epoch: number;
  read: number;
  failed: number;
  speed: number;
  fenced: number;
}

// `orders__eu__3__1200`: the collection is the part before shard and position.
export function collectionOf(name: string): string {
  return name.split("__").slice(0, -2).join("__") || name;
}

const order = new Intl.Collator("en", { numeric: true });

// Names in order. Sorting many is slow and they seldom change: the order is kept until they do.
export class ItemIndex {
  private source: unknown;
  private size = -1;
  private sorted: string[] = [];

  names(items: Items): string[] {
    const names = Object.keys(items.items);
    if (items.items !== this.source || names.length !== this.size) {
      this.sorted = names.sort(order.compare);
      this.source = items.items;
      this.size = names.length;
    }
    return this.sorted;
  }
}

// Reads one item's array by the columns that the server names.
export function itemReader(items: Items): (name: string) => ItemView {
  const at = (column: string) => items.columns.indexOf(column);
  const [state, percent, holder, due, attempt, epoch, read, failed, speed, fenced] = [
    "state",
    "percent",
    "holder",
    "due_at",
    "attempt",
    "epoch",
    "read",
    "failed",
    "docs_per_second",
    "fenced",
  ].map(at) as [number, number, number, number, number, number, number, number, number, number];
  return (name) => {
    const row = items.items[name] ?? [];
    return {
      name,
      state: itemStates[row[state] ?? 0] ?? "waiting",
      percent: row[percent] ?? -1,
      holder: items.holders[String(row[holder] ?? -1)] ?? "",
      due: row[due] ?? 0,
      attempt: row[attempt] ?? 0,
      epoch: row[epoch] ?? 0,
      read: row[read] ?? 0,
      failed: row[failed] ?? 0,
      speed: row[speed] ?? 0,
      fenced: row[fenced] ?? 0,
    };
  };
}
