import { duration } from "./format";

// Round places on a time axis: about `wanted` of them between two times.

const steps = [
  1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400,
].map((seconds) => seconds * 1000);

export function timeStep(span: number, wanted: number): number {
  const least = span / Math.max(1, wanted);
  const day = 86_400_000;
  return steps.find((step) => step >= least) ?? Math.ceil(least / day) * day;
}

// Offsets from `from`, so that a run's own clock begins at 0.
export function ticks(span: number, wanted: number): number[] {
  const step = timeStep(span, wanted);
  const all: number[] = [];
  for (let at = 0; at <= span; at += step) all.push(at);
  return all;
}

export function tickLabel(at: number): string {
  const hours = at / 3_600_000;
  if (at === 0) return "0";
  return Number.isInteger(hours) && hours < 48 ? `+${hours} h` : "+" + duration(at);
}
