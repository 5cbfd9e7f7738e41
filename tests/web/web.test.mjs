// The dashboard in Chromium. One server and one browser for all: tests that only read come first,
// tests that change something last.
import { after, before, test } from "node:test";
import { access } from "./access.mjs";
import { actions } from "./actions.mjs";
import { api } from "./api.mjs";
import { live } from "./live.mjs";
import { pages } from "./pages.mjs";
import { speed } from "./speed.mjs";
import { Browser, withPage } from "./support/browser.mjs";
import { openStage } from "./support/stage.mjs";

const world = {
  stage: undefined,
  browser: undefined,
  // A test with its own page. `options` are those of Browser.page.
  on: (name, options, body) =>
    test(name, () => withPage(world.browser, world.stage, options, body)),
};

before(
  async () => {
    world.stage = await openStage();
    world.browser = await Browser.open();
  },
  { timeout: 240_000 },
);
after(async () => {
  await world.browser?.close();
  await world.stage?.close();
});

pages(world);
api(world);
access(world);
speed(world);
live(world);
actions(world);
