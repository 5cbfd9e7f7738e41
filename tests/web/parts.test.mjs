// Components of pages, without a browser.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { test } from "node:test";

const web = new URL("../../web/", import.meta.url);
const { buildSync } = createRequire(web)("./node_modules/esbuild");

async function load(file) {
  const { outputFiles } = buildSync({
    entryPoints: [new URL("src/" + file, web).pathname],
    bundle: true,
    format: "esm",
    write: false,
    nodePaths: [new URL("node_modules", web).pathname],
  });
  return import(
    "data:text/javascript;base64," + Buffer.from(outputFiles[0].text).toString("base64")
  );
}

const cases = (name) =>
  JSON.parse(readFileSync(new URL(`../data/web/${name}.json`, import.meta.url), "utf8"));

const { applyPatch } = await load("api/patch.ts");
const { EventParser } = await load("api/sse.ts");
const { parseRoute, href } = await load("lib/route.ts");
const { pageOf } = await load("lib/places.ts");
const { bytes, duration, percent, short } = await load("lib/format.ts");
const { collectionOf } = await load("lib/items.ts");
const { layoutRanks } = await load("parts/rank_layout.ts");
const { MapLayout } = await load("parts/map_layout.ts");

test("merge patches apply as in RFC 7396", () => {
  for (const { target, patch, result } of cases("merge_patches")) {
    assert.deepEqual(applyPatch(target, patch), result, JSON.stringify(patch));
  }
});

test("events are parsed from chunks of any size", () => {
  const text =
    'retry: 1000\n\nid: b.1\nevent: snapshot\ndata: {"a":1}\n\n: a comment\r\nevent: ping\r\ndata: x\r\ndata: y\r\n\r\n';
  for (let size = 1; size < text.length; size += 1) {
    const parser = new EventParser();
    const events = [];
    for (let at = 0; at < text.length; at += size)
      events.push(...parser.push(text.slice(at, at + size)));
    assert.deepEqual(
      events,
      [
        { id: "b.1", name: "snapshot", data: '{"a":1}' },
        { id: "b.1", name: "ping", data: "x\ny" },
      ],
      `cut every ${size}`,
    );
  }
});

test("addresses round-trip, whatever is in a name", () => {
  const parts = ["work", "0", "a/b?c#d%20 ü"];
  assert.deepEqual(parseRoute(href(parts, { q: "x&y=z" })).path, parts);
  assert.equal(parseRoute(href(parts, { q: "x&y=z" })).query.get("q"), "x&y=z");
  assert.deepEqual(parseRoute("#/a/%").path, ["a", "%"]);
});

test("a failure links to its page", () => {
  for (const { path, name, page } of cases("pages_of_paths"))
    assert.equal(pageOf(path, name), page);
});

test("an incomplete fraction is never shown as 100 %", () => {
  assert.equal(percent(0.9999), "99 %");
  assert.equal(percent(1), "100 %");
});

test("numbers and times stay short", () => {
  assert.deepEqual([0, 9_999, 12_345, 4_600_000].map(short), ["0", "9,999", "12.3 k", "4.6 M"]);
  assert.deepEqual([0, 999, 12_345, 4_600_000].map(bytes), ["0 B", "999 B", "12.3 kB", "4.6 MB"]);
  assert.deepEqual([250, 61_000, 150_000, 3_600_000 * 26, 3_600_000 * 50].map(duration), [
    "250 ms",
    "61 s",
    "2 min 30 s",
    "26 h",
    "2 d 2 h",
  ]);
});

test("a collection may have double underscores in its name", () => {
  assert.equal(collectionOf("a__b__3__1200"), "a__b");
  assert.equal(collectionOf("orders__0__0"), "orders");
});

test("ranks are drawn after those they need, wrapped to the page's width", () => {
  const ranks = [
    { rank: 1, needs: [] },
    { rank: 2, needs: [1] },
    { rank: 3, needs: [1] },
    { rank: 4, needs: [2, 3] },
  ];
  const wide = layoutRanks(ranks, 1000);
  assert.ok(wide.places.get(4).x > wide.places.get(2).x);
  assert.equal(wide.places.get(2).x, wide.places.get(3).x);
  assert.equal(wide.edges.length, 4);
  const narrow = layoutRanks(ranks, 150);
  assert.ok([...narrow.places.values()].every(({ x }) => x === 0));
  assert.ok(narrow.width <= 150);
});

test("an item is found on the map where it is painted", () => {
  const names = Array.from({ length: 500 }, (_, n) => `${n < 123 ? "a" : "b"}__${n}__0`);
  const layout = new MapLayout(names, 400);
  for (const index of [0, 1, 122, 123, 124, 499]) {
    const { x, y } = layout.place(index);
    assert.equal(layout.at(x + 3, y + 3), index);
  }
  assert.equal(layout.at(3, layout.height + 100), -1);
  const seen = layout.visible(0, layout.height).reduce((sum, { from, to }) => sum + to - from, 0);
  assert.equal(seen, names.length);
});
