/**
 * One question to the server: a path and its parameters in, typed JSON out, or a `Failure` that says what to tell the user.
 *
 * The page asks its own origin and nobody else. Answers are not checked field by field: the server's tests hold them to
 * docs/openapi.json.
 */

/** Parameters of a question; `undefined` and empty ones are left out, an array repeats its name. */
export type Parameters = Record<string, string | number | bigint | readonly string[] | undefined>;

/** Why a question was not answered. */
export class Failure extends Error {
  override readonly name = "Failure";
  constructor(
    /** The server's words, or ours where none arrived. */
    message: string,
    readonly detail: {
      /** Absent if no answer arrived. */
      status?: number;
      /** Stable code of the API; `unreachable` and `unreadable` are ours. */
      code: string;
      requestId?: string;
      /** The parameter at fault. */
      field?: string;
      /** Where in a TraceQL text, from 1, in characters. */
      line?: number;
      column?: number;
      /** What would have been right there. */
      expected?: readonly string[];
      /** Seconds to wait before another try. */
      retryAfter?: number;
    },
  ) {
    super(message);
  }

  /** Whether asking the same again can help. */
  get isTransient(): boolean {
    return ["unreachable", "busy", "unavailable"].includes(this.detail.code);
  }
}

/** `/api/v1/spans?q=...`; also what a link for downloading points to. */
export function address(path: string, parameters: Parameters = {}): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    const values = Array.isArray(value) ? value : [value];
    for (const one of values) if (one !== undefined && one !== "") query.append(name, String(one));
  }
  const text = query.toString();
  return `/api/v1${path}${text ? `?${text}` : ""}`;
}

/** Asks, and waits for JSON. `signal` gives up. */
export async function ask<T>(path: string, parameters: Parameters, signal?: AbortSignal): Promise<T> {
  return read<T>(await send(address(path, parameters), signal ? { signal } : {}));
}

/** Sends a body, and waits for JSON. */
export async function post<T>(path: string, parameters: Parameters, body: BodyInit, signal?: AbortSignal): Promise<T> {
  return read<T>(await send(address(path, parameters), { method: "POST", body, ...(signal ? { signal } : {}) }));
}

async function send(url: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(url, { ...init, headers: { accept: "application/json" }, credentials: "same-origin" });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Failure("the server does not answer: it may be stopped, or the network is down", { code: "unreachable" });
  }
}

async function read<T>(response: Response): Promise<T> {
  if (response.ok) {
    try {
      return (await response.json()) as T;
    } catch (error) {
      if (error instanceof DOMException && error.name === "AbortError") throw error;
      throw unreadable(response);
    }
  }
  throw await refusal(response);
}

/** What the API says about a refusal. */
interface Refusal {
  code: string;
  message: string;
  request_id?: string;
  field?: string;
  line?: number;
  column?: number;
  expected?: string[];
}

async function refusal(response: Response): Promise<Failure> {
  const body = (await response.json().catch(() => null)) as { error?: Refusal } | null;
  const error = body?.error;
  if (!error) return unreadable(response);
  const wait = Number(response.headers.get("retry-after"));
  return new Failure(error.message, {
    status: response.status,
    code: error.code,
    ...withoutAbsent({
      requestId: error.request_id,
      field: error.field,
      line: error.line,
      column: error.column,
      expected: error.expected,
      retryAfter: wait > 0 ? wait : undefined,
    }),
  });
}

function unreadable(response: Response): Failure {
  const { status } = response;
  const requestId = response.headers.get("x-request-id");
  const detail = { status, ...(requestId ? { requestId } : {}) };
  // Not the server's words: something in front of it speaks while it is away.
  if (status >= 502 && status <= 504) {
    return new Failure(`the server does not answer: what stands in front of it says ${status}`, {
      ...detail,
      code: "unreachable",
    });
  }
  const message =
    status === 404
      ? "this server does not know the question: it is older than the page, or something else answers at this address"
      : `the answer (status ${status}) cannot be read: expected JSON`;
  return new Failure(message, { ...detail, code: "unreadable" });
}

function withoutAbsent<T extends object>(value: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(value).filter(([, part]) => part !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>;
  };
}
