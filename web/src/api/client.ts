import type { Action, ActionResult, Problem } from "./types";

// A request that was refused or not answered, with a hint.
export class ApiError extends Error {
  constructor(
    readonly problem: Problem,
    readonly status: number,
    readonly retryAfterMs?: number,
  ) {
    super(problem.message);
  }
}

export function apiPath(...parts: (string | number)[]): string {
  return "/api/v1/" + parts.map((part) => encodeURIComponent(part)).join("/");
}

// The error of an unsuccessful response.
export async function refusal(response: Response): Promise<ApiError> {
  const after = Number(response.headers.get("Retry-After"));
  let problem: Problem = {
    code: "internal",
    message: `the server answered ${response.status} ${response.statusText}`.trim(),
  };
  try {
    problem = ((await response.json()) as { error: Problem }).error ?? problem;
  } catch {
    // A proxy may answer with an error page instead of JSON: the status is enough.
  }
  return new ApiError(problem, response.status, after > 0 ? after * 1000 : undefined);
}

async function request<T>(path: string, init: RequestInit): Promise<T> {
  let response: Response;
  try {
    response = await fetch(path, { ...init, credentials: "same-origin" });
  } catch {
    throw new ApiError(
      {
        code: "unavailable",
        message: "the server cannot be reached",
        hint: "check that it is still running",
      },
      0,
    );
  }
  if (!response.ok) throw await refusal(response);
  return (await response.json()) as T;
}

export function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  return request<T>(path, signal ? { signal } : {});
}

export function act(action: Action, preview: boolean): Promise<ActionResult> {
  const body = preview ? { ...action.body, preview: true } : { ...action.body };
  return request<ActionResult>(action.path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
}
