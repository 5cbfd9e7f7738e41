// states_peers.mjs PACKAGE DEFINITION TRANSITIONS: microseconds that aws-local-stepfunctions takes for
// one transition of a state machine, the best of some runs.

import {copyFileSync, mkdtempSync, readFileSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';

const [folder, definition, transitions] = process.argv.slice(2);
// Its build for browsers needs no other packages; under this name Node takes it for a module.
const copy = mkdtempSync(join(tmpdir(), 'muster-states-'));
const bundle = join(copy, 'bundle.mjs');
copyFileSync(join(folder, 'build', 'main.browser.esm.js'), bundle);
const {StateMachine} = await import(bundle);
rmSync(copy, {recursive: true});
const machine = new StateMachine(JSON.parse(readFileSync(definition, 'utf8')));
let best = Infinity;
for (let run = 0; run < 10; ++run) {
  const start = process.hrtime.bigint();
  await machine.run({a: 1}).result;
  best = Math.min(best, Number(process.hrtime.bigint() - start) / 1000 / Number(transitions));
}
console.log(best);
