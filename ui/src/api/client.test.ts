import { afterEach, expect, test, vi } from "vitest";

import { Failure, address, ask } from "./client";

afterEach(() => vi.unstubAllGlobals());

/** Answers every request with this. */
function answering(status: number, body: string, headers: Record<string, string> = {}): void {
  vi.stubGlobal("fetch", async () => new Response(body, { status, headers }));
}

async function failureOf(asked: Promise<unknown>): Promise<Failure> {
  const outcome = await asked.then(
    () => null,
    (error: unknown) => error,
  );
  if (outcome instanceof Failure) return outcome;
  throw new Error(`expected a failure, got ${String(outcome)}`);
}

test("parameters are escaped, repeated, and left out where absent", () => {
  expect(
    address("/spans", { q: '{ name = "a&b" }', start: 1_796_076_315_462_194_529n, end: undefined, page: "" }),
  ).toBe("/api/v1/spans?q=%7B+name+%3D+%22a%26b%22+%7D&start=1796076315462194529");
  expect(address("/profile/series", { by: ["service.name", "region"] })).toBe(
    "/api/v1/profile/series?by=service.name&by=region",
  );
  expect(address("/services")).toBe("/api/v1/services");
});

test("a refusal carries the server's words, place and request id", async () => {
  const error = {
    code: "invalid_argument",
    message: "`foo` is unknown",
    request_id: "1f3a-7",
    field: "q",
    line: 1,
    column: 3,
  };
  answering(400, JSON.stringify({ error }));
  const failure = await failureOf(ask("/spans", {}));
  expect(failure.message).toBe("`foo` is unknown");
  expect(failure.detail).toMatchObject({ status: 400, requestId: "1f3a-7", field: "q", line: 1, column: 3 });
  expect(failure.isTransient).toBe(false);
});

test("a busy server is asked again, after as long as it wants", async () => {
  answering(429, JSON.stringify({ error: { code: "busy", message: "too many requests", request_id: "x" } }), {
    "retry-after": "3",
  });
  const failure = await failureOf(ask("/spans", {}));
  expect([failure.isTransient, failure.detail.retryAfter]).toEqual([true, 3]);
});

test("something else at the address is told from a missing answer", async () => {
  answering(200, "<html>", { "x-request-id": "7" });
  expect((await failureOf(ask("/spans", {}))).detail).toMatchObject({ code: "unreadable", requestId: "7" });
  answering(404, "<html>");
  expect((await failureOf(ask("/spans", {}))).message).toContain("does not know the question");
  answering(502, "<html>");
  expect((await failureOf(ask("/spans", {}))).isTransient).toBe(true);
  vi.stubGlobal("fetch", async () => {
    throw new TypeError("fetch failed");
  });
  expect((await failureOf(ask("/spans", {}))).detail.code).toBe("unreachable");
});

test("giving up is no failure", async () => {
  vi.stubGlobal("fetch", async () => {
    throw new DOMException("aborted", "AbortError");
  });
  await expect(ask("/spans", {})).rejects.toMatchObject({ name: "AbortError" });
});
