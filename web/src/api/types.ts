// The API's shapes as docs/api/openapi.yaml promises them. Times are milliseconds since 1970.

export interface Problem {
  code: string;
  message: string;
  hint?: string;
}

export type ByKey<T> = Record<string, T>;

export interface StoreInfo {
  url: string;
  reachable: boolean;
  why?: string;
}

export interface Session {
  role: "operator" | "viewer";
  read_only: boolean;
  actor: string;
  version: string;
  now_at: number;
  stores: ByKey<StoreInfo>;
  viewers: number;
  max_viewers: number;
}

export interface Counts {
  read: number;
  written: number;
  skipped: number;
  failed: number;
  bytes: number;
}

export interface Command {
  what: string;
  command: string;
}

export interface Action {
  path: string;
  body?: Record<string, unknown>;
  allowed: boolean;
  why?: string;
}

export interface ActionResult {
  preview: boolean;
  what: string;
  affects: { kind: string; name: string; effect?: string }[];
  affected?: number;
  command?: string;
}

export interface Overview {
  stores: ByKey<StoreInfo>;
  migrations: ByKey<MigrationSummary>;
  work: ByKey<WorkSummary>;
  replica_sets: ByKey<ReplicaSummary>;
  failures: ByKey<FailureGroup>;
  failures_total: number;
  dead_letters: number;
  truncated?: boolean;
}

export type TaskTallies = Partial<
  Record<"total" | "waiting" | "running" | "backoff" | "succeeded" | "failed" | "stopped", number>
>;

export interface MigrationSummary {
  store: string;
  migration: string;
  tenant: string;
  plan: string;
  profile: string;
  status: "IN_PROGRESS" | "COMPLETED" | "FAILED" | "CANCELLED" | "UNREADABLE";
  attempt: number;
  started_at: number;
  ended_at?: number;
  driven?: boolean; // of one in progress
  why?: string;
  error?: string;
  tasks: TaskTallies;
  current_ranks?: number[];
  expected_end_at?: number;
}

export interface Migration extends MigrationSummary {
  path: string;
  hash: string;
  inputs: ByKey<string>;
  execution: string;
  cause?: string;
  attempts: RunAttempt[];
  ranks: ByKey<Rank>;
  why_no_ranks?: string;
  critical_path: string[];
  commands: Command[];
  actions: ByKey<Action>;
}

export interface RunAttempt {
  attempt: number;
  status: MigrationSummary["status"];
  started_at?: number;
  ended_at?: number;
  error?: string;
  cause?: string;
  done_again: string[];
  tasks: {
    phase: "extract" | "transform";
    task: string;
    rank: number;
    status: "RUNNING" | "SUCCEEDED" | "FAILED" | "STOPPED";
    rows?: number;
    error?: string;
  }[];
}

export type TaskStatus = "waiting" | "running" | "backoff" | "succeeded" | "failed" | "stopped";

export interface Rank {
  rank: number;
  name?: string;
  group?: string;
  external?: boolean;
  needs: number[];
  status: TaskStatus;
  why?: string;
  started_at?: number;
  ended_at?: number;
  rows?: number; // while it is under way
  expected_rows?: number;
  rows_per_second?: number;
  left_ms?: number;
  tasks: ByKey<Task>;
}

export interface Task {
  phase: "extract" | "transform";
  task: string;
  rank: number;
  status: TaskStatus;
  why?: string;
  earlier?: boolean;
  critical?: boolean;
  started_at?: number;
  ended_at?: number;
  next_try_at?: number;
  rows?: number;
  expected_rows?: number;
  max_attempts?: number;
  reads?: string[];
  target?: string;
  attempts: Attempt[];
}

export interface Attempt {
  status: "running" | "succeeded" | "failed" | "timed_out" | "stopped";
  started_at: number;
  ended_at?: number;
  backoff_until_at?: number;
  error?: string;
  cause?: string;
}

export interface TaskDetail extends Task {
  store: string;
  migration: string;
  input?: string; // JSON text
  output?: string;
  error?: string;
  cause?: string;
  likely_cause?: string;
  remedy?: string;
  log: { at: number; level?: "info" | "warning" | "error"; text: string }[];
  commands: Command[];
  actions: ByKey<Action>;
}

export interface WorkSummary {
  store: string;
  run: string;
  state: "preparing" | "running" | "waiting" | "finished" | "unreadable";
  why?: string;
  source: string;
  sink: string;
  created_at?: number;
  items: number;
  done: number;
  held: number;
  waiting: number;
  quarantined: number;
  unreadable?: number;
  counts: Counts;
  documents?: number;
  docs_per_second: number;
  left_ms?: number;
}

// Columns of equal length, the oldest first.
export interface Series {
  at: number[];
  docs_per_second?: number[];
  bytes_per_second?: number[];
  failed_per_second?: number[];
  held?: number[];
  handled_per_second?: number[];
  lag_events?: number[];
  lag_ms?: number[];
  write_p50_ms?: number[];
  write_p99_ms?: number[];
}

export interface WorkDetail extends WorkSummary {
  incarnation: string;
  workers: ByKey<{ items: number; docs_per_second: number }>;
  collections?: ByKey<{ items: number; done: number; counts: Counts }>;
  series: Series;
  latency?: { writes?: number; mean_ms?: number; p50_ms?: number; p99_ms?: number };
  why_no_latency?: string;
  commands: Command[];
  actions: ByKey<Action>;
}

export interface Items {
  columns: string[];
  holders: ByKey<string>;
  items: ByKey<number[]>;
  truncated?: boolean;
}

export interface Item {
  store: string;
  run: string;
  item: string;
  collection?: string;
  shard?: number;
  state: "open" | "done" | "quarantined";
  holder?: string;
  why: string;
  due_at?: number;
  epoch: number;
  attempt: number;
  fenced?: number;
  fraction?: number;
  counts: Counts;
  docs_per_second?: number;
  left_ms?: number;
  position?: string;
  end?: string;
  successors: string[];
  error?: string;
  commands: Command[];
  actions: ByKey<Action>;
}

export interface ReplicaSummary {
  store: string;
  set: string;
  generation: number;
  phase: "none" | "preparing" | "running" | "unreadable";
  why?: string;
  reason?: string;
  since_at?: number;
  partitions: number;
  workers: number;
  ready: number;
  lag_events?: number;
  lag_ms?: number;
  parked?: number;
  parked_events?: number;
}

export interface Member {
  name: string;
  phase: "pending" | "ready" | "running" | "stopping" | "stopped" | "dead";
  why?: string;
  generation: number;
  ready: boolean;
  partition?: number;
  handled: number;
  pause_ms?: number;
  heartbeat_due_at?: number;
  slots: number;
  error?: string;
}

export interface ProjectionInfo {
  projection: string;
  version: number;
  active: boolean;
  paused: boolean;
  why?: string;
  handled?: number;
  skipped?: number;
  definition?: string;
  parked_events?: number;
  lag_events?: number;
  lag_ms?: number;
  clear_ms?: number;
  slot_lag?: number[];
  slot_lag_ms?: number[];
  slot_position?: number[];
  series?: Series;
  parked?: ByKey<{ events: number; error: string; slot?: number; replay?: boolean }>;
}

export interface ReplicaSet extends ReplicaSummary {
  strategy?: "recreate" | "incremental";
  scale?: number;
  slots: number;
  members: ByKey<Member>;
  assignment: string[];
  projections: ByKey<ProjectionInfo>;
  why_no_lag?: string;
  transitions: { at: number; generation?: number; what: string; cause?: string }[];
  commands: Command[];
  actions: ByKey<Action>;
}

export interface FailureExample {
  kind: "task" | "item" | "stream" | "worker" | "dead_letter" | "store";
  store?: string;
  run?: string;
  name: string;
  error: string;
  at?: number;
  path: string;
}

export interface FailureGroup {
  signature: string;
  count: number;
  kinds: ByKey<number>;
  examples: FailureExample[];
}

export interface Failures {
  total: number;
  groups: ByKey<FailureGroup>;
}

export interface DeadLetterFile {
  run: string;
  store?: string;
  sink?: string;
  letters: number;
  bytes: number;
  changed_at?: number;
  signatures?: ByKey<number>;
  job?: { running: boolean; failed: boolean; text: string };
  actions?: ByKey<Action>;
}

export interface DeadLetterFiles {
  folder: string;
  files: ByKey<DeadLetterFile>;
}

export interface DeadLetter {
  offset: number;
  run: string;
  collection: string;
  item: string;
  id: string;
  position?: string;
  error: string;
  document?: string;
}

export interface DeadLetters {
  next?: number;
  letters: DeadLetter[];
}
