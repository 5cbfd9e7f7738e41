// Every page shows its content, and the address determines what is shown.
import assert from "node:assert/strict";

export function pages({ on }) {
  const phone = { viewport: { width: 390, height: 844 } };

  on(
    "the first page lists migrations of all tenants and filters by the address",
    {},
    async (page, show, stage) => {
      await show("#/");
      const { id, tenant } = stage.migration;
      await page.getByRole("link", { name: id, exact: true }).waitFor();
      await page.getByRole("searchbox", { name: "Filter migrations" }).fill(tenant);
      await page.waitForFunction(() => location.hash.includes("q="));
      const address = page.url();
      await page.reload();
      assert.equal(page.url(), address);
      await page.getByRole("link", { name: id, exact: true }).waitFor();
      await page
        .getByRole("searchbox", { name: "Filter migrations" })
        .fill("there is no such migration");
      await page.getByText("No matching migrations.").waitFor();
    },
  );

  on(
    "a run shows its ranks, the critical path and a bar for every attempt",
    {},
    async (page, show, stage) => {
      await show(`#/migrations/${stage.failed.store}/${stage.failed.id}`);
      await page.getByRole("heading", { name: stage.failed.id }).waitFor();
      await page.getByRole("group", { name: "Ranks and what they need" }).waitFor();
      assert.ok((await page.locator(".rank").count()) > 0);
      assert.ok((await page.locator(".rank.on-path").count()) > 0, "no rank on the critical path");
      const row = page.locator(".gantt .row", { hasText: stage.failed.task }).first();
      assert.ok((await row.locator(".attempt").count()) >= 2, "no bar for each attempt");
      assert.ok((await row.locator(".pause").count()) >= 1, "no pause between attempts");
      await page.locator(".rank [role=button]").first().click();
      await page.waitForFunction(() => location.hash.includes("rank="));
    },
  );

  on(
    "a task shows input, error, log, attempts and the equivalent command",
    {},
    async (page, show, stage) => {
      const { store, id, phase, task } = stage.failed;
      await show(`#/migrations/${store}/${id}/${phase}/${task}`);
      for (const panel of [
        "Error",
        "Attempts",
        "Input",
        "Output",
        "Log",
        "The same on the command line",
      ]) {
        await page.getByRole("region", { name: panel, exact: true }).first().waitFor();
      }
      await page.getByText("muster retry", { exact: false }).first().waitFor();
    },
  );

  on(
    "the map of items can be navigated with keys and opens an item",
    {},
    async (page, show, stage) => {
      await show(`#/work/${stage.work.store}/${stage.work.run}`);
      const map = page.getByRole("application");
      await map.focus();
      await page.keyboard.press("ArrowRight");
      await page.keyboard.press("ArrowRight");
      await page.keyboard.press("Enter");
      await page.getByRole("complementary").getByText("Attempt").waitFor();
      assert.match(page.url(), /item=/);
      await page.keyboard.press("Escape");
      await page.getByRole("complementary").waitFor({ state: "detached" });
    },
  );

  on("the list of items shows the same as text", {}, async (page, show, stage) => {
    await show(`#/work/${stage.work.store}/${stage.work.run}?view=list`);
    const table = page.getByRole("table", { name: "Items" });
    await table.getByRole("row").nth(3).waitFor();
    assert.equal(Number(await table.getAttribute("aria-rowcount")), stage.work.items + 1);
    assert.ok((await table.getByRole("row").count()) < 100, "rows out of sight are there");
  });

  on(
    "the pipeline shows throughput, bulk latency and rejects over time",
    {},
    async (page, show, stage) => {
      await show(`#/work/${stage.work.store}/${stage.work.run}?view=pipeline`);
      for (const panel of ["Documents", "Bytes", "Bulk latency", "Rejects", "Workers"]) {
        await page.getByRole("region", { name: panel, exact: true }).waitFor();
      }
      await page.locator(".uplot canvas").first().waitFor();
    },
  );

  on(
    "a replica set shows workers by slots, lag and the last transitions",
    {},
    async (page, show, stage) => {
      await show(`#/replicas/${stage.set.store}/${stage.set.set}`);
      await page
        .getByRole("region", { name: "Workers and slots" })
        .locator("svg .owned")
        .first()
        .waitFor();
      await page.getByRole("region", { name: "Last transitions", exact: true }).waitFor();
      await page.getByText("Caught up in").first().waitFor();
    },
  );

  on("two clicks lead from the first page to the failing row", {}, async (page, show, stage) => {
    await show("#/");
    await page
      .getByRole("region", { name: "Needs attention" })
      .locator(".signatures a")
      .first()
      .click();
    await page.locator("details[open] tbody a").first().click();
    await page.waitForFunction(() => !location.hash.startsWith("#/failures"));
    await page.locator("main h1").waitFor();
  });

  on("dead letters show the document verbatim", {}, async (page, show, stage) => {
    await show("#/dead-letters");
    await page.getByRole("link", { name: stage.letters, exact: true }).click();
    await page.locator("details[open] pre").first().waitFor();
  });

  on("missing resources are reported with a way back", {}, async (page, show, stage) => {
    await page.goto(stage.url + "#/nonsense");
    await page.getByText("Page not found.").waitFor();
    await show("#/migrations/0/no-such-migration");
    await page.getByRole("alert").waitFor();
  });

  on("keys lead to every page, and ? lists them", {}, async (page, show, stage) => {
    await show("#/");
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keys" }).waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    for (const [keys, title] of [
      ["gw", "Work"],
      ["gr", "Replica sets"],
      ["gf", "Failures"],
      ["gd", "Dead letters"],
      ["gm", "Migrations"],
    ]) {
      for (const key of keys) await page.keyboard.press(key);
      await page.getByRole("heading", { level: 1, name: title }).waitFor();
    }
  });

  on("an address that changes while the page is drawn is followed", {}, async (page, _, stage) => {
    await page.addInitScript(() => {
      new MutationObserver((_changes, observer) => {
        if (!document.querySelector("#app main")) return;
        observer.disconnect();
        location.hash = "#/failures";
      }).observe(document, { childList: true, subtree: true });
    });
    await page.goto("about:blank");
    await page.goto(stage.url);
    await page.getByRole("heading", { level: 1, name: "Failures" }).waitFor({ timeout: 10_000 });
  });

  on("a phone scrolls down, never sideways", phone, async (page, show, stage) => {
    const { store, id } = stage.failed;
    for (const address of [
      "#/",
      `#/migrations/${store}/${id}`,
      `#/work/${stage.work.store}/${stage.work.run}`,
      `#/replicas/${stage.set.store}/${stage.set.set}`,
      "#/failures",
      "#/dead-letters",
    ]) {
      await show(address);
      await page.locator("main .panel").first().waitFor();
      const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(over <= 0, `${address} is ${over} pixels wider than the screen`);
    }
  });
}
