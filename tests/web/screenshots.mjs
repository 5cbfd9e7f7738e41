// node screenshots.mjs FOLDER: the guide's screenshots, of real migrations.
import { join } from "node:path";
import { Browser } from "./support/browser.mjs";
import { openStage } from "./support/stage.mjs";

const [folder] = process.argv.slice(2);
const wide = { width: 1360, height: 860 };
const tall = { width: 1360, height: 2600 };
const phone = { width: 390, height: 844 };

const stage = await openStage();
const { migration, failed, work, set } = stage;
const run = `#/migrations/${failed.store}/${failed.id}`;
const items = `#/work/${work.store}/${work.run}`;
const pictures = [
  { name: "migrations", address: "#/" },
  { name: "run", address: `#/migrations/${migration.store}/${migration.id}` },
  { name: "attempts", address: run, viewport: tall, of: "Tasks" },
  {
    name: "retry",
    address: `${run}/${failed.phase}/${failed.task}`,
    act: (page) => page.keyboard.press("r"),
  },
  { name: "items", address: items, act: hoverItem },
  { name: "pipeline", address: `${items}?view=pipeline`, colorScheme: "dark", wait: 20_000 },
  { name: "replica", address: `#/replicas/${set.store}/${set.set}`, act: joinWorker },
  {
    name: "failures",
    address: "#/failures",
    act: (page) => page.locator("summary").first().click(),
  },
  { name: "phone", address: run, viewport: phone },
];

async function joinWorker(page) {
  stage.start("replica", "run", "orders.yaml", "--name", "late", "--progress=none");
  await page.getByText("late").first().waitFor();
  await page.locator(".slot-chart").hover({ position: { x: 700, y: 50 } });
}

async function hoverItem(page) {
  const box = await page.locator(".item-map").boundingBox();
  await page.mouse.move(box.x + 300, box.y + 160);
}

const browser = await Browser.open();
const only = process.env.ONLY?.split(",");
for (const { name, address, act, colorScheme = "light", viewport = wide, of, wait } of pictures) {
  if (only && !only.includes(name)) continue;
  const { page, show, end } = await browser.page(stage, {
    viewport,
    colorScheme,
    deviceScaleFactor: 1,
  });
  await show(address);
  await page.locator("main .panel").first().waitFor();
  await page.evaluate(() => document.fonts.ready);
  await page.waitForTimeout(wait ?? 1200); // charts are drawn after their data
  await act?.(page);
  if (act) await page.waitForTimeout(400);
  const clip = of && (await page.getByRole("region", { name: of }).boundingBox());
  await page.screenshot({ path: join(folder, name + ".png"), ...(clip ? { clip } : {}) });
  await end();
}
await browser.close();
await stage.close();
