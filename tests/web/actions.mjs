// Every action is previewed, then confirmed.
import assert from "node:assert/strict";

export function actions({ on }) {
  const posts = (page) => {
    const bodies = [];
    page.on("request", (request) => {
      if (request.method() === "POST") bodies.push(request.postDataJSON());
    });
    return bodies;
  };

  on("an action that is not confirmed changes nothing", {}, async (page, show, stage) => {
    const { store, id, phase, task } = stage.failed;
    await show(`#/migrations/${store}/${id}/${phase}/${task}`);
    const sent = posts(page);
    await page.getByRole("button", { name: `Retry ${task}` }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText(/Affects \d+/).waitFor();
    await dialog.getByText("muster retry", { exact: false }).waitFor();
    await dialog.getByRole("button", { name: "Dismiss" }).click();
    await dialog.waitFor({ state: "detached" });
    assert.ok(
      sent.every((body) => body.preview === true),
      "something was done without being confirmed",
    );
    await page.locator("main").getByText("failed", { exact: true }).first().waitFor();
  });

  on("a failed task is retried and shown live", {}, async (page, show, stage) => {
    const { store, id, phase, task } = stage.failed;
    await stage.fixTask?.();
    await show(`#/migrations/${store}/${id}/${phase}/${task}`);
    await page.getByRole("button", { name: `Retry ${task}` }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Retry", exact: true }).click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await page.locator("dl.facts .state", { hasText: /running|succeeded/ }).waitFor();
  });

  on("a run is cancelled and shown as cancelled", {}, async (page, show, stage) => {
    const { store, id } = stage.migration;
    await show(`#/migrations/${store}/${id}`);
    await page
      .getByRole("button", { name: `Cancel ${id}`, exact: true, disabled: false })
      .waitFor();
    await page.keyboard.press("c");
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("button", { name: "Cancel", exact: true }).click();
    await page.locator("dl.facts .state", { hasText: "cancelled" }).waitFor();
  });

  on("a projection is paused, shows why, and resumes", {}, async (page, show, stage) => {
    const { store, set, projection } = stage.set;
    await show(`#/replicas/${store}/${set}`);
    const panel = page.getByRole("region", {
      name: `Projection ${projection}`,
    });
    await panel.getByRole("button", { name: "Pause" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Pause", exact: true }).click();
    await panel.getByText("paused", { exact: true }).waitFor();
    await panel.getByRole("button", { name: "Resume" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Resume", exact: true }).click();
    await panel.getByRole("button", { name: "Pause" }).waitFor();
  });

  on("dead letters are redriven", {}, async (page, show, stage) => {
    await show("#/dead-letters");
    await page.getByRole("button", { name: `Redrive ${stage.letters}` }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText(/Affects \d+/).waitFor();
    await dialog.getByRole("button", { name: "Redrive", exact: true }).click();
    await dialog.waitFor({ state: "detached" });
    await page.locator(".notice").waitFor();
  });
}
