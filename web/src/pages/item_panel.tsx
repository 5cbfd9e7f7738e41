import type { ComponentChildren } from "preact";
import { apiPath } from "../api/client";
import { useLive, useNow } from "../api/live";
import type { Item } from "../api/types";
import { count, duration, percent, plural, rate } from "../lib/format";
import { href, setFilters } from "../lib/route";
import { useKeys } from "../lib/keys";
import { Actions } from "../parts/action";
import { Command, Text } from "../parts/bits";
import { Loaded } from "../parts/loading";
import { State } from "../parts/state";

// One item, beside the map.
export function ItemPanel({ store, run, item }: { store: string; run: string; item: string }) {
  const topic = useLive<Item>(apiPath("stores", store, "work", run, "items", item));
  const close = () => setFilters({ item: "" });
  useKeys([{ keys: "Escape", what: "close the item", run: close }]);
  return (
    <aside class="panel side" aria-label={"Item " + item}>
      <header>
        <h2 class="mono">{item}</h2>
        <button class="plain end" onClick={close} aria-label="Close the item">
          ✕
        </button>
      </header>
      <div class="body stack">
        <Loaded topic={topic}>{(data) => <Details item={data} />}</Loaded>
      </div>
    </aside>
  );
}

function Details({ item }: { item: Item }) {
  const now = useNow();
  const held = item.state === "open" && !!item.holder && (item.due_at ?? 0) > now;
  const rows: [string, ComponentChildren][] = [
    ["State", <State state={item.state === "open" ? (held ? "held" : "waiting") : item.state} />],
  ];
  if (item.holder) rows.push([held ? "Holder" : "Last holder", item.holder]);
  if (held && item.due_at !== undefined) rows.push(["Lease left", duration(item.due_at - now)]);
  if (item.fraction !== undefined) rows.push(["Done", percent(item.fraction)]);
  rows.push(["Attempt", count(item.attempt)], ["Claimed", plural(item.epoch, "time")]);
  if (item.fenced !== undefined) rows.push(["Fenced", plural(item.fenced, "time")]);
  rows.push(["Read", count(item.counts.read)]);
  if (item.counts.added) rows.push(["Added by scripts", count(item.counts.added)]);
  rows.push(
    ["Written", count(item.counts.written)],
    ["Skipped", count(item.counts.skipped)],
    [
      "Rejected",
      item.counts.failed ? <span class="failed">{count(item.counts.failed)}</span> : "0",
    ],
  );
  if (item.docs_per_second) rows.push(["Speed", rate(item.docs_per_second)]);
  if (item.left_ms !== undefined) rows.push(["Done in", duration(item.left_ms)]);
  if (item.position) rows.push(["Position", <code>{item.position}</code>]);
  if (item.end) rows.push(["Ends before", <code>{item.end}</code>]);
  return (
    <>
      {item.why && <p class="muted">{item.why}</p>}
      <Actions actions={item.actions} of={item.item} />
      {item.error && <Text label="Error" text={item.error} />}
      <dl class="rows">
        {rows.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {item.successors.length > 0 && (
        <div>
          <h3>Successors</h3>
          <ul>
            {item.successors.map((name) => (
              <li key={name} class="mono">
                <a href={href(["work", item.store, item.run], { item: name })}>{name}</a>
              </li>
            ))}
          </ul>
        </div>
      )}
      {item.commands.map(({ command }) => (
        <Command key={command} text={command} />
      ))}
    </>
  );
}
