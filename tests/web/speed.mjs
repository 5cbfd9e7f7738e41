// Speed: the first paint, the size of the page, and scrolling ten thousand items.
// The page's processor time is always judged. Wall-clock times depend on the load of this machine and its host,
// which is unknown: they are measured until they have been good once, and frame rates are compared with those of the
// same page when idle.
import assert from "node:assert/strict";
import { gzipSync } from "node:zlib";

const rounds = 10;

export function speed({ on }) {
  on("the page is under 120 kB compressed", {}, async (_page, _show, stage) => {
    let size = 0;
    for (const file of ["", "app.js", "app.css", "icon.svg"]) {
      const response = await fetch(stage.url + file);
      assert.equal(response.status, 200, file);
      size += gzipSync(Buffer.from(await response.arrayBuffer()), { level: 9 }).length;
    }
    assert.ok(size < 120_000, `it is ${size} bytes`);
  });

  on("the first paint comes within 200 ms", {}, async (page, show, stage) => {
    await show("#/"); // warms up the browser's code, not the page's
    const paints = [];
    while (paints.length < rounds && !(Math.min(...paints) < 200)) {
      await page.goto("about:blank");
      await page.goto(stage.url, { waitUntil: "load" });
      await page.waitForFunction(() => performance.getEntriesByName("first-contentful-paint")[0]);
      paints.push(
        await page.evaluate(
          () => performance.getEntriesByName("first-contentful-paint")[0].startTime,
        ),
      );
    }
    const said = `it came after ${paints.map(Math.round).join(", ")} ms`;
    console.log(said);
    assert.ok(Math.min(...paints) < 200, said);
  });

  for (const [view, selector] of [
    ["map", ".item-map"],
    ["list", ".item-list"],
  ]) {
    const name = `the ${view} of ten thousand items scrolls at more than 50 frames a second`;
    on(name, {}, async (page, show, stage) => {
      assert.ok(stage.work.items >= 10_000);
      await show(`#/work/${stage.work.store}/${stage.work.run}?view=${view}`);
      await page.locator(selector).waitFor();
      const cost = await costMeter(page);
      const seen = [];
      let least = Infinity;
      let isSmooth = false;
      while (seen.length < rounds && !isSmooth) {
        const idle = await page.evaluate(scroll, { selector, step: 0 });
        await page.evaluate((one) => (document.querySelector(one).scrollTop = 0), selector);
        const before = await cost();
        const { frames, perSecond, top } = await page.evaluate(scroll, { selector, step: 60 });
        assert.ok(top > 500, "it did not scroll");
        least = Math.min(least, ((await cost()) - before) / frames);
        isSmooth = perSecond > 50 || perSecond > 0.9 * idle.perSecond;
        seen.push(`${perSecond.toFixed(1)} (${idle.perSecond.toFixed(1)} when it does nothing)`);
      }
      const said = `a frame costs ${least.toFixed(1)} ms, frames a second: ${seen.join(", ")}`;
      console.log(`${view}: ${said}`);
      assert.ok(least < 20, said);
      assert.ok(isSmooth, said);
    });
  }
}

// Milliseconds of the page's main thread, by its own clock: waiting for a busy core does not
// count.
async function costMeter(page) {
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  return async () => {
    const { metrics } = await session.send("Performance.getMetrics");
    return metrics.find(({ name }) => name === "TaskDuration").value * 1000;
  };
}

// Runs in the page: scrolls one step per frame.
function scroll({ selector, step }) {
  return new Promise((resolve) => {
    const box = document.querySelector(selector);
    const times = [];
    const frame = (now) => {
      times.push(now);
      box.scrollTop += step;
      if (times.length < 120) return requestAnimationFrame(frame);
      const frames = times.length - 1;
      return resolve({
        frames,
        perSecond: (frames * 1000) / (times.at(-1) - times[0]),
        top: box.scrollTop,
      });
    };
    requestAnimationFrame(frame);
  });
}
