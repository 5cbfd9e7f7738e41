// The page updates live; a broken stream is shown and resumed.
import assert from "node:assert/strict";

export function live({ on }) {
  const refused = /Failed to load resource|net::ERR/;

  on("numbers update live", {}, async (page, show, stage) => {
    await show(`#/work/${stage.work.store}/${stage.work.run}?view=pipeline`);
    const facts = page.locator("dl.facts").first();
    await facts.waitFor();
    const before = await facts.innerText();
    await page.waitForFunction(
      (text) => document.querySelector("dl.facts")?.innerText !== text,
      before,
    );
  });

  on("a hidden page closes its stream and reopens it at once", {}, async (page, show) => {
    await show("#/");
    await page.evaluate(() => {
      const [later, wait] = [window.setTimeout, 30_000];
      window.setTimeout = (body, ms, ...rest) => later(body, ms === wait ? 10 : ms, ...rest);
      Object.defineProperty(document, "hidden", { value: true, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
    });
    await page.getByText("connecting", { exact: true }).waitFor();
    await page.evaluate(() => {
      Object.defineProperty(document, "hidden", { value: false });
      document.dispatchEvent(new Event("visibilitychange"));
    });
    await page.locator(".badge.live").waitFor();
  });

  on(
    "a broken stream is shown as stale and resumed where it was",
    { allow: refused },
    async (page, show, stage) => {
      await show("#/");
      await page.getByRole("link", { name: stage.migration.id, exact: true }).waitFor();
      const ids = [];
      page.on("request", (request) => {
        if (request.url().includes("/api/v1/events")) ids.push(request.headers()["last-event-id"]);
      });
      await stage.breakStream();
      await page.locator(".badge.stale").waitFor();
      await page.getByRole("heading", { name: "Migrations" }).waitFor();
      await stage.restoreStream();
      await page.locator(".badge.live").waitFor();
      assert.ok(ids.length >= 1);
      assert.match(ids[0], /^[^.]+\.\d+$/, "it did not send the last event id");
    },
  );
}
