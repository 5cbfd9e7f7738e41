import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import { apiPath } from "../api/client";
import { useLive, useNow } from "../api/live";
import type { Items, WorkDetail } from "../api/types";
import { count, duration, plural, rate, short } from "../lib/format";
import { ItemIndex, itemReader, itemStates, type ItemState } from "../lib/items";
import { href, setFilters } from "../lib/route";
import { Actions } from "../parts/action";
import { Bad, Chips, Crumbs, Empty, Facts, Panel, Why } from "../parts/bits";
import { ItemList } from "../parts/item_list";
import { ItemMap } from "../parts/item_map";
import { Loaded } from "../parts/loading";
import { ItemPanel } from "./item_panel";
import { Commands } from "./migration";
import { Pipeline } from "./pipeline";
import { WorkState } from "./work";

type View = "map" | "list" | "pipeline";

export function WorkRunPage(props: { store: string; run: string; query: URLSearchParams }) {
  const { store, run, query } = props;
  const view = (query.get("view") ?? "map") as View;
  const path = apiPath("stores", store, "work", run);
  const work = useLive<WorkDetail>(path);
  const items = useLive<Items>(view === "pipeline" ? undefined : path + "/items");
  return (
    <>
      <Crumbs steps={[["Work", href(["work"])]]} />
      <Loaded topic={work}>
        {(data) => (
          <>
            <div class="head">
              <div class="grow">
                <h1>{data.run}</h1>
                <p class="muted mono">
                  {data.source} → {data.sink}
                </p>
              </div>
              <Actions actions={data.actions} of={data.run} />
            </div>
            <Why state="waiting" why={data.why} />
            <Facts facts={factsOf(data)} />
            <Chips<View>
              label="View"
              value={view}
              onChange={(value) => setFilters({ view: value === "map" ? "" : value })}
              choices={[
                ["map", "Map of items"],
                ["list", "List of items"],
                ["pipeline", "Pipeline"],
              ]}
            />
            {view === "pipeline" && <Pipeline work={data} />}
          </>
        )}
      </Loaded>
      {view !== "pipeline" && (
        <Loaded topic={items}>
          {(data) => <ItemsView store={store} run={run} data={data} query={query} view={view} />}
        </Loaded>
      )}
      {work.data && (
        <Panel title="The same on the command line">
          <Commands commands={work.data.commands} />
        </Panel>
      )}
    </>
  );
}

function factsOf(work: WorkDetail): [string, ComponentChildren][] {
  const facts: [string, ComponentChildren][] = [
    ["State", <WorkState run={work} />],
    [
      "Items done",
      <>
        {count(work.done)} <small>of {count(work.items)}</small>
      </>,
    ],
    [
      "Held",
      <>
        {count(work.held)} <small>by {plural(Object.keys(work.workers).length, "worker")}</small>
      </>,
    ],
    [
      "Quarantined",
      <>
        <Bad number={work.quarantined} />
        {work.unreadable !== undefined && (
          <small class="failed"> and {plural(work.unreadable, "unreadable item")}</small>
        )}
      </>,
    ],
    [
      "Documents",
      <>
        {short(work.counts.read)}{" "}
        {work.documents !== undefined && <small>of about {short(work.documents)}</small>}
      </>,
    ],
    [
      "Rejected",
      work.counts.failed ? (
        <a class="failed" href={href(["dead-letters"], { run: work.run })}>
          {count(work.counts.failed)}
        </a>
      ) : (
        "0"
      ),
    ],
  ];
  // Short items are done before their holder's speed is known.
  const speed = Math.max(work.docs_per_second, work.series.docs_per_second?.at(-1) ?? 0);
  if (work.state !== "finished") facts.push(["Speed", rate(speed)]);
  if (work.left_ms !== undefined) facts.push(["Done in", duration(work.left_ms)]);
  return facts;
}

function ItemsView(props: {
  store: string;
  run: string;
  data: Items;
  query: URLSearchParams;
  view: View;
}) {
  const { data, query } = props;
  const now = useNow();
  const index = useMemo(() => new ItemIndex(), []);
  const all = index.names(data);
  const item = itemReader(data);
  const state = (query.get("state") ?? "") as ItemState | "";
  const text = (query.get("q") ?? "").toLowerCase();
  const chosen = query.get("item") ?? "";
  const tallies = new Map<ItemState, number>();
  const filtered: string[] = [];
  for (const name of all) {
    const one = item(name);
    tallies.set(one.state, (tallies.get(one.state) ?? 0) + 1);
    if (state && one.state !== state) continue;
    if (text && !name.toLowerCase().includes(text) && !one.holder.toLowerCase().includes(text))
      continue;
    filtered.push(name);
  }
  // The map keeps its layout as long as its list is the same one.
  const names = state || text ? filtered : all;
  const choose = (name: string) => setFilters({ item: name === chosen ? "" : name });
  return (
    <div class={chosen ? "with-side" : ""}>
      <section class="panel" aria-label="Items">
        <header>
          <div class="filters">
            <input
              type="search"
              placeholder="Item or holder"
              aria-label="Filter items"
              value={query.get("q") ?? ""}
              onInput={(event) => setFilters({ q: event.currentTarget.value })}
            />
            <Chips<ItemState | "">
              label="State"
              value={state}
              onChange={(value) => setFilters({ state: value })}
              choices={[
                ["", `All ${count(all.length)}`],
                ...itemStates.map((one): [ItemState, string] => [
                  one,
                  `${one} ${count(tallies.get(one) ?? 0)}`,
                ]),
              ]}
            />
          </div>
          {data.truncated && <span class="end muted">the first 100,000 only</span>}
        </header>
        {!names.length && <Empty>{all.length ? "No matching items." : "No items yet."}</Empty>}
        {names.length > 0 && props.view === "list" && (
          <ItemList names={names} item={item} now={now} chosen={chosen} onChoose={choose} />
        )}
        {names.length > 0 && props.view === "map" && (
          <>
            <ItemMap names={names} item={item} chosen={chosen} onChoose={choose} />
            <MapLegend />
          </>
        )}
      </section>
      {chosen && <ItemPanel store={props.store} run={props.run} item={chosen} />}
    </div>
  );
}

function MapLegend() {
  return (
    <div class="legend map-legend">
      <span>
        <i class="swatch waiting-cell" />
        waiting
      </span>
      <span>
        <i class="swatch held-cell" />
        held, filled as far as it is
      </span>
      <span>
        <i class="swatch backoff-cell" />
        backing off
      </span>
      <span>
        <i class="swatch done-cell" />
        done
      </span>
      <span>
        <i class="swatch failed" />
        quarantined, or unreadable
      </span>
      <span>
        <i class="swatch attempts-cell" />
        several attempts
      </span>
      <span>
        <i class="swatch fenced-cell" />
        fenced
      </span>
    </div>
  );
}
