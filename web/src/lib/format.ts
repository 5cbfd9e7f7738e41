// The one format of numbers, times and sizes.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const one = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });

export function count(value: number): string {
  return whole.format(value);
}

// 12,345 up to there, then 12.3 k, 4.6 M.
export function short(value: number): string {
  const size = Math.abs(value);
  if (size < 10 && value % 1 !== 0) return one.format(value);
  if (size < 10_000) return whole.format(value);
  if (size < 1e6) return one.format(value / 1e3) + " k";
  if (size < 1e9) return one.format(value / 1e6) + " M";
  return one.format(value / 1e9) + " G";
}

export function bytes(value: number): string {
  return short(value).replace(/ ?([kMG]?)$/, " $1B");
}

export function rate(value: number): string {
  return short(value) + "/s";
}

export function percent(fraction: number): string {
  // Never rounds up to 100 %.
  return Math.floor(Math.min(1, Math.max(0, fraction)) * 100) + " %";
}

export function duration(ms: number): string {
  const seconds = Math.round(Math.abs(ms) / 1000);
  if (Math.abs(ms) < 1000) return Math.round(Math.abs(ms)) + " ms";
  if (seconds < 120) return seconds + " s";
  const minutes = Math.floor(seconds / 60);
  if (minutes < 120) {
    const rest = seconds % 60;
    return rest && minutes < 10 ? `${minutes} min ${rest} s` : `${minutes} min`;
  }
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return minutes % 60 ? `${hours} h ${minutes % 60} min` : `${hours} h`;
  const days = Math.floor(hours / 24);
  return hours % 24 ? `${days} d ${hours % 24} h` : `${days} d`;
}

const clock = new Intl.DateTimeFormat("en-GB", {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
});
const dayAndClock = new Intl.DateTimeFormat("en-GB", {
  day: "2-digit",
  month: "short",
  hour: "2-digit",
  minute: "2-digit",
});
const whenExactly = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "long" });

export function clockTime(ms: number): string {
  return clock.format(ms);
}

// Only the time of day if it is today, else with the date.
export function time(ms: number, now: number): string {
  const sameDay = new Date(ms).toDateString() === new Date(now).toDateString();
  return sameDay ? clock.format(ms) : dayAndClock.format(ms);
}

export function exactTime(ms: number): string {
  return whenExactly.format(ms);
}

export function ago(ms: number, now: number): string {
  const span = now - ms;
  if (span < 1000) return "just now";
  return duration(span) + " ago";
}

export function plural(value: number, singular: string, several = singular + "s"): string {
  return `${count(value)} ${value === 1 ? singular : several}`;
}
