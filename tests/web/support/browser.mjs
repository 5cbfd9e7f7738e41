import { chromium } from "playwright-core";

// One Chromium for a test file; a fresh page, logged in, for each test. Console errors and
// exceptions of the page fail its test.
export class Browser {
  static async open() {
    const browser = new Browser();
    browser.chromium = await chromium.launch({
      executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
      args: ["--no-sandbox"],
    });
    return browser;
  }

  async close() {
    await this.chromium.close();
  }

  // `allow`: errors that the test provokes.
  async page(stage, { allow = /^$/, viewport = { width: 1400, height: 900 }, ...rest } = {}) {
    const context = await this.chromium.newContext({ viewport, ...rest });
    const page = await context.newPage();
    const errors = [];
    page.on("pageerror", (error) => errors.push(`thrown: ${error.stack ?? error}`));
    page.on("console", (message) => {
      if (message.type() === "error" && !allow.test(message.text())) errors.push(message.text());
    });
    page.setDefaultTimeout(30_000);
    await page.goto(stage.login);
    return {
      page,
      show: async (address) => {
        await page.goto(stage.url + address);
        await page.getByText("live", { exact: true }).waitFor();
      },
      end: async () => {
        await context.close();
        if (errors.length) throw new Error("the page reported errors:\n" + errors.join("\n"));
      },
    };
  }
}

// Runs `body` with a page, and fails if there was an error on it.
export async function withPage(browser, stage, options, body) {
  const { page, show, end } = await browser.page(stage, options);
  let failure;
  try {
    await body(page, show, stage);
  } catch (error) {
    failure = error;
  }
  await end().catch((error) => (failure ??= error));
  if (failure) throw failure;
}
