// axe-core finds no serious problem on any page, in dark and light.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

export function access({ on }) {
  function addresses({ failed, work, set, letters }) {
    return {
      migrations: "#/",
      run: `#/migrations/${failed.store}/${failed.id}`,
      task: `#/migrations/${failed.store}/${failed.id}/${failed.phase}/${failed.task}`,
      map: `#/work/${work.store}/${work.run}`,
      list: `#/work/${work.store}/${work.run}?view=list`,
      pipeline: `#/work/${work.store}/${work.run}?view=pipeline`,
      replica: `#/replicas/${set.store}/${set.set}`,
      failures: "#/failures",
      "dead letters": "#/dead-letters",
      letter: `#/dead-letters/${letters}`,
    };
  }

  const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
  for (const colorScheme of ["light", "dark"]) {
    on(
      `axe-core has no serious finding in ${colorScheme}`,
      { colorScheme },
      async (page, show, stage) => {
        // The page's policy blocks foreign scripts; axe is injected through the debugger.

        const found = [];
        for (const [name, address] of Object.entries(addresses(stage))) {
          await show(address);
          await page.locator("main .panel").first().waitFor();
          await page.evaluate(axe);
          const { violations } = await page.evaluate(() =>
            globalThis.axe.run({ resultTypes: ["violations"] }),
          );
          for (const { id, impact, nodes } of violations) {
            if (impact !== "serious" && impact !== "critical") continue;
            found.push(
              `${name}: ${id} (${impact}): ${nodes
                .slice(0, 3)
                .map((node) => node.html.slice(0, 160))
                .join(" | ")}`,
            );
          }
        }
        assert.deepEqual(found, []);
      },
    );
  }
}
