import { spawn, spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../../", import.meta.url));
const muster = process.env.MUSTER ?? join(root, "build/release/bin/muster");
const simpplr = join(root, "examples/simpplr");
const items = 10_000;
const scale = 0.002; // of the example's data

// `muster serve` on a store with real migrations: one whose last but one rank fails, one that
// waits before its next attempt, ten thousand items that a worker migrates, and a replica set with
// two workers. Everything ends with the stage.
export async function openStage() {
  const folder = mkdtempSync(join(tmpdir(), "muster-web-"));
  const children = new Set();
  const env = { ...process.env, MUSTER_STORE: "sqlite:runs.db", NO_COLOR: "1" };
  process.on("exit", () => children.forEach((child) => child.kill("SIGKILL")));
  const start = (...args) => {
    const child = spawn(muster, args, { cwd: folder, env, stdio: ["ignore", "pipe", "ignore"] });
    children.add(child);
    child.on("exit", () => children.delete(child));
    return child;
  };
  const run = (program, args, input) => {
    const { status, stdout, stderr, error } = spawnSync(program, args, {
      cwd: folder,
      env,
      input,
      encoding: "utf8",
    });
    if (error) throw error;
    return { status, stdout, stderr };
  };

  const url = { port: 0 };
  let server;
  const serve = async () => {
    server = start(
      "serve",
      "--port",
      String(url.port),
      "--replica",
      "orders.yaml",
      "--dead-letters",
      ".",
      "--token-file",
      "tokens",
      "--audit-log",
      "audit.jsonl",
      "--login-link",
      "--json",
    );
    return JSON.parse(await lineOf(server));
  };

  try {
    prepareMigrations(folder, run);
    prepareWork(folder);
    cpSync(join(root, "examples/replica/orders.yaml"), join(folder, "orders.yaml"));
    run(
      muster,
      ["events", "append", "sqlite:shop.db"],
      readFileSync(join(root, "examples/replica/events.ndjson")),
    );
    start(
      "run",
      "slow.yaml",
      "--input",
      "tenantId=customer-1",
      "--input",
      "migrationId=m-slow",
      "--progress=none",
    );
    start(
      "worker",
      "--run",
      "shards",
      "jsonl:shards.jsonl?id=id&partition_bytes=258",
      "sqlite:target.db#docs",
      "--docs-per-second",
      "20",
      "--progress=none",
    );
    start("replica", "run", "orders.yaml", "--workers", "2", "--progress=none");
    const failed = run(muster, [
      "run",
      "failing.yaml",
      "--input",
      "tenantId=customer-1",
      "--input",
      "migrationId=m-failed",
      "--progress=none",
    ]);
    if (failed.status !== 1)
      throw new Error("the failing migration did not fail: " + failed.stderr);
    await until("the slow migration waits", () =>
      /backoff|Retry|FAILED/i.test(run(muster, ["history", "m-slow"]).stdout),
    );
    await until("items are made", () =>
      run(muster, ["work", "status", "--json"]).stdout.includes(`"items":${items}`),
    );
    const { url: address, login } = await serve();
    url.port = new URL(address).port;
    return {
      url: address.endsWith("/") ? address : address + "/",
      login,
      migration: { store: "0", id: "m-slow", tenant: "customer-1" },
      failed: { store: "0", id: "m-failed", phase: "transform", task: "feed-comments" },
      work: { store: "0", run: "shards", items },
      set: { store: "0", set: "orders", projection: "orders" },
      letters: "shards.dead-letters.jsonl",
      run: (...args) => run(muster, args),
      start,
      fixTask: () => sql(run, "failing.db", "DROP TRIGGER refuse"),
      breakStream: async () => {
        const gone = new Promise((resolve) => server.on("exit", resolve));
        server.kill("SIGKILL");
        await gone;
      },
      restoreStream: serve,
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }

  async function close() {
    for (const child of children) child.kill("SIGKILL");
    await Promise.all(
      [...children].map((child) => new Promise((resolve) => child.on("exit", resolve))),
    );
    rmSync(folder, { recursive: true, force: true });
  }
}

// The example's plan, twice: each with a target of its own that refuses comments, one with short pauses
// between attempts, one with long ones. The trigger does not raise: a violated constraint is not retried.
function prepareMigrations(folder, run) {
  run(join(simpplr, "generate"), ["--scale", String(scale), "salesforce.db"]);
  cpSync(join(simpplr, "scripts"), join(folder, "scripts"), { recursive: true });
  const plan = readFileSync(join(simpplr, "plan.yaml"), "utf8");
  const schema = readFileSync(join(simpplr, "schema/sqlite.sql"), "utf8");
  for (const [name, pause] of [
    ["failing", "1s"],
    ["slow", "600s"],
  ]) {
    writeFileSync(
      join(folder, name + ".yaml"),
      plan
        .replace("interval: 120s, attempts: 2", `interval: ${pause}, attempts: 1`)
        .replace(/rows: (\d+)/g, (_, rows) => `rows: ${Math.max(1, Math.round(rows * scale))}`)
        .replace("sqlite:zeus.db", `sqlite:${name}.db`)
        .replace("staging/{migrationId}", `staging-${name}/{migrationId}`),
    );
    sql(
      run,
      name + ".db",
      schema +
        `
      INSERT INTO accounts_tenants VALUES ('customer-1', 'Customer');
      CREATE TRIGGER refuse BEFORE INSERT ON feed_comments BEGIN SELECT json('comments are refused'); END;`,
    );
  }
}

// One file in ten thousand shards of two lines; one line is not JSON.
function prepareWork(folder) {
  const line = (n) => JSON.stringify({ id: String(n).padStart(6, "0"), pad: "x".repeat(104) });
  const lines = Array.from({ length: 2 * items }, (_, n) => line(n));
  lines[3] = lines[3].slice(0, -1).padEnd(lines[3].length, " ");
  writeFileSync(join(folder, "shards.jsonl"), lines.join("\n") + "\n");
}

function sql(run, file, text) {
  const program =
    "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); db.executescript(sys.stdin.read()); db.commit()";
  const { status, stderr } = run("python3", ["-c", program, file], text);
  if (status !== 0) throw new Error(stderr);
}

async function until(what, holds) {
  const end = Date.now() + 90_000;
  while (!holds()) {
    if (Date.now() > end) throw new Error("waited too long until " + what);
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
}

// The first line that a server prints when it is ready.
function lineOf(server) {
  return new Promise((resolve, reject) => {
    let text = "";
    server.stdout.on("data", (data) => {
      text += data;
      const end = text.indexOf("\n");
      if (end >= 0) resolve(text.slice(0, end));
    });
    server.on("exit", (code) =>
      reject(new Error(`the server ended with ${code} before it was ready`)),
    );
  });
}
