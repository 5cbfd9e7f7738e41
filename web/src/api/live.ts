import { useEffect, useLayoutEffect, useReducer, useRef } from "preact/hooks";
import { ApiError, refusal } from "./client";
import { applyPatch } from "./patch";
import { EventParser, type StreamEvent } from "./sse";
import type { Problem } from "./types";

// One stream for everything on the page. Topics come and go with the pages that show them; the data of a
// broken stream stays, marked as stale, until the next snapshot or delta.

export interface Topic<T> {
  data?: T;
  problem?: Problem; // the server cannot read it at the moment
}

export type Connection =
  | { state: "connecting" }
  | { state: "live" }
  | { state: "stale"; since: number; why: string; retryAt: number }
  | { state: "signed out" };

const silence = 15_000; // the server sends something every 5 s
const hiddenFor = 30_000;
const topics = new Map<string, Topic<unknown> & { users: number }>();
const listeners = new Set<() => void>();
let connection: Connection = { state: "connecting" };
let clockOffset = 0;
let lastEventId = "";
let failures = 0;
let attempt: AbortController | undefined;
let retryTimer = 0;

// The server's clock, by which leases and pauses end.
export function serverNow(): number {
  return Date.now() + clockOffset;
}

function notify(): void {
  for (const listener of listeners) listener();
}

function setConnection(next: Connection): void {
  connection = next;
  notify();
}

let restartQueued = false;
function restartSoon(): void {
  if (restartQueued) return;
  restartQueued = true;
  // Leaving one page and entering the next changes the topics once.
  setTimeout(() => {
    restartQueued = false;
    lastEventId = ""; // ids belong to the stream with the earlier topics
    failures = 0;
    open();
  }, 0);
}

function open(): void {
  attempt?.abort();
  clearTimeout(retryTimer);
  if (!topics.size) return;
  const controller = new AbortController();
  attempt = controller;
  follow(controller.signal).then(
    () => lost(controller, "the server ended the stream"),
    (error: unknown) => lost(controller, error),
  );
}

function lost(controller: AbortController, reason: unknown): void {
  if (controller !== attempt) return; // replaced on purpose
  if (reason instanceof ApiError && reason.status === 401) {
    setConnection({ state: "signed out" });
    return;
  }
  const why =
    reason instanceof ApiError
      ? reason.message
      : typeof reason === "string"
        ? reason
        : "the server cannot be reached";
  failures += 1;
  const pause = Math.min(10_000, 500 * 2 ** Math.min(failures, 5)) * (0.75 + Math.random() / 2);
  const delay = (reason instanceof ApiError && reason.retryAfterMs) || pause;
  const since = connection.state === "stale" ? connection.since : Date.now();
  setConnection({ state: "stale", since, why, retryAt: Date.now() + delay });
  retryTimer = window.setTimeout(open, delay);
}

// A browser opens few connections to a server, and every stream is one: hidden pages close theirs and
// reopen it when they are shown.
let hiddenTimer = 0;
document.addEventListener("visibilitychange", () => {
  clearTimeout(hiddenTimer);
  if (document.hidden) {
    hiddenTimer = window.setTimeout(letGo, hiddenFor);
  } else if (!attempt) {
    open();
  }
});

function letGo(): void {
  const left = attempt;
  attempt = undefined;
  left?.abort();
  clearTimeout(retryTimer);
  setConnection({ state: "connecting" });
}

export function reconnectNow(): void {
  failures = 0;
  open();
}

async function follow(signal: AbortSignal): Promise<void> {
  const query = [...topics.keys()].map((topic) => "topic=" + encodeURIComponent(topic)).join("&");
  const headers: Record<string, string> = { Accept: "text/event-stream" };
  if (lastEventId) headers["Last-Event-ID"] = lastEventId;
  const response = await fetch("/api/v1/events?" + query, { headers, signal, cache: "no-store" });
  if (!response.ok || !response.body) throw await refusal(response);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  const parser = new EventParser();
  let watchdog = 0;
  const stayAwake = () => {
    clearTimeout(watchdog);
    watchdog = window.setTimeout(() => void reader.cancel(), silence);
  };
  try {
    stayAwake();
    for (;;) {
      const { done, value } = await reader.read();
      // A replaced stream may still deliver events for its topics.
      if (done || signal.aborted) return;
      stayAwake();
      const events = parser.push(value);
      if (!events.length) continue;
      for (const event of events) take(event);
      failures = 0;
      if (connection.state !== "live") connection = { state: "live" };
      notify();
    }
  } finally {
    clearTimeout(watchdog);
  }
}

interface EventData {
  topic?: string;
  data?: unknown;
  patch?: unknown;
  error?: Problem;
  now_at?: number;
}

function take(event: StreamEvent): void {
  const message = JSON.parse(event.data) as EventData;
  if (event.id) lastEventId = event.id;
  if (event.name === "ping" && message.now_at !== undefined)
    clockOffset = message.now_at - Date.now();
  const topic = message.topic === undefined ? undefined : topics.get(message.topic);
  if (!topic) return;
  if (event.name === "problem") {
    topic.problem = message.error ?? { code: "internal", message: "the server cannot read this" };
    return;
  }
  if (event.name === "snapshot") topic.data = message.data;
  if (event.name === "delta") topic.data = applyPatch(topic.data, message.patch);
  delete topic.problem;
}

// In a layout effect: an ordinary effect would miss notifications until the page is painted.
function useNotifications(listener: () => void): void {
  useLayoutEffect(() => {
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }, []);
}

// The API's response for `path`, kept up to date. Renders again on every change of any topic.
export function useLive<T>(path: string | undefined): Topic<T> {
  const [, render] = useReducer((value: number) => value + 1, 0);
  const empty = useRef<Topic<T>>({});
  useNotifications(render as () => void);
  useEffect(() => {
    if (path === undefined) return;
    const topic = topics.get(path) ?? { users: 0 };
    topic.users += 1;
    topics.set(path, topic);
    if (topic.users === 1) restartSoon();
    return () => {
      topic.users -= 1;
      if (topic.users) return;
      topics.delete(path);
      restartSoon();
    };
  }, [path]);
  const topic = path === undefined ? undefined : topics.get(path);
  return (topic as Topic<T> | undefined) ?? empty.current;
}

export function useConnection(): Connection {
  const [, render] = useReducer((value: number) => value + 1, 0);
  useNotifications(render as () => void);
  return connection;
}

// The server's clock, ticking.
export function useNow(every = 1000): number {
  const [, render] = useReducer((value: number) => value + 1, 0);
  useEffect(() => {
    const timer = setInterval(render, every);
    return () => clearInterval(timer);
  }, [every]);
  return serverNow();
}
