// The API's responses match its document.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));

export function api({ on }) {
  on("the API matches its document", {}, async (page, _show, stage) => {
    const { migration, failed, work, set, letters } = stage;
    const stores = "/api/v1/stores/";
    const items = `${stores}${work.store}/work/${work.run}/items`;
    const get = async (path) => (await page.request.get(stage.url + path.slice(1))).json();
    const [item] = Object.keys((await get(items)).items);
    const paths = [
      "/api/v1/session",
      "/api/v1/overview",
      "/api/v1/failures",
      "/api/v1/dead-letters",
      `/api/v1/dead-letters/${letters}`,
      `${stores}${migration.store}/migrations/${migration.id}`,
      `${stores}${failed.store}/migrations/${failed.id}`,
      `${stores}${failed.store}/migrations/${failed.id}/tasks/${failed.phase}/${failed.task}`,
      `${stores}${work.store}/work/${work.run}`,
      items,
      `${items}/${item}`,
      `${stores}${set.store}/replica-sets/${set.set}`,
    ];
    const answers = await Promise.all(
      paths.map(async (path) => JSON.stringify({ path, answer: await get(path) })),
    );
    const { stdout, stderr, status } = spawnSync(
      here("./support/openapi_check"),
      [here("../../docs/api/openapi.yaml")],
      { input: answers.join("\n"), encoding: "utf8" },
    );
    assert.equal(stdout + stderr, "");
    assert.equal(status, 0);
  });
}
