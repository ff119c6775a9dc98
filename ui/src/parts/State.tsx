/** The four faces of a question: empty with its reason, loading, failed, answered. They never look alike. */

import type { UseQueryResult } from "@tanstack/react-query";
import { type ReactNode, useEffect, useState } from "react";

import { Failure } from "../api/client";
import { useClock } from "../time/clock";

/** What is shorter shows no progress: a flash says nothing. */
const PROGRESS_AFTER_MS = 250;
/** What takes longer can be cancelled, and says how long it has taken. */
const CANCEL_AFTER_MS = 1_000;

/** Nothing there: why, and the next step. */
export function Empty({ title, children, actions }: { title: string; children?: ReactNode; actions?: ReactNode }) {
  return (
    <section className="state empty">
      <h2>{title}</h2>
      {children && <div className="muted">{children}</div>}
      {actions && <div className="actions">{actions}</div>}
    </section>
  );
}

/** Nothing to show yet. */
export function Loading({ what, onCancel }: { what: string; onCancel?: (() => void) | undefined }) {
  const passed = usePassed(true);
  return (
    <section className="state loading" aria-busy="true">
      {passed >= PROGRESS_AFTER_MS && (
        <>
          <div className="progress" />
          <p className="muted" role="status">
            Loading {what}...
          </p>
        </>
      )}
      {onCancel && passed >= CANCEL_AFTER_MS && (
        <div className="actions">
          <button type="button" className="button small" onClick={onCancel}>
            Cancel ({Math.floor(passed / 1000)} s)
          </button>
        </div>
      )}
    </section>
  );
}

/** The server's message, the request id and Retry. */
export function Failed({ what, error, onRetry }: { what: string; error: unknown; onRetry?: (() => void) | undefined }) {
  const failure = error instanceof Failure ? error : null;
  const detail = failure?.detail;
  return (
    <section className="state failed" role="alert">
      <h2>{what} could not be loaded</h2>
      <p>{messageOf(error)}</p>
      {detail?.expected && <p className="muted">Expected {detail.expected.join(", ")}</p>}
      {detail?.retryAfter && <p className="muted">The server asks to wait {detail.retryAfter} s.</p>}
      <p className="muted mono">
        {[detail?.code, detail?.status, detail?.requestId && `request ${detail.requestId}`].filter(Boolean).join(" · ")}
      </p>
      {onRetry && (
        <div className="actions">
          <button type="button" className="button" onClick={onRetry}>
            Retry
          </button>
        </div>
      )}
    </section>
  );
}

/** What is shown of a query, plain or infinite. */
type Asking<T> = Pick<UseQueryResult<T>, "data" | "error" | "isError" | "isFetching" | "isPlaceholderData"> & {
  refetch: () => unknown;
};

/**
 * Shows a question in whatever state it is: the old answer stays, dimmed, under a thin progress bar while a changed one is
 * asked; Cancel gives up and keeps the old one.
 */
export function Asked<T>({
  what,
  query,
  onCancel,
  children,
}: {
  /** In the middle of a sentence: `spans`. */
  what: string;
  query: Asking<T>;
  onCancel?: (() => void) | undefined;
  children: (answer: T) => ReactNode;
}) {
  const passed = usePassed(query.isFetching);
  const { isLive } = useClock();
  // A refetch of the same question in the background dims nothing: what is on screen is its answer. Neither does live mode:
  // the screen would flicker.
  const isChanging = query.isPlaceholderData && passed >= PROGRESS_AFTER_MS && !isLive;
  const isCancelled = query.isPlaceholderData && !query.isFetching;
  if (query.isError && !query.isFetching && query.data === undefined)
    return <Failed what={capitalised(what)} error={query.error} onRetry={() => void query.refetch()} />;
  if (query.data === undefined)
    return query.isFetching ? (
      <Loading what={what} onCancel={onCancel} />
    ) : (
      <Cancelled what={what} onRetry={() => void query.refetch()} />
    );
  return (
    <div className="asked" aria-busy={isChanging}>
      {query.isFetching && passed >= PROGRESS_AFTER_MS && (
        <div className="progress" role="progressbar" aria-label={`Loading ${what}`} />
      )}
      {query.isFetching && onCancel && passed >= CANCEL_AFTER_MS && (
        <button type="button" className="button small progress-cancel" onClick={onCancel}>
          Cancel ({Math.floor(passed / 1000)} s)
        </button>
      )}
      {query.isError && !query.isFetching && (
        <p className="notice" role="alert">
          {capitalised(what)} could not be refreshed: {messageOf(query.error)}{" "}
          <button type="button" className="button small" onClick={() => void query.refetch()}>
            Retry
          </button>
        </p>
      )}
      {isCancelled && (
        <p className="notice">
          Cancelled: this is still the answer to the question before.{" "}
          <button type="button" className="button small" onClick={() => void query.refetch()}>
            Load {what}
          </button>
        </p>
      )}
      <div className="asked-body">{children(query.data)}</div>
    </div>
  );
}

function Cancelled({ what, onRetry }: { what: string; onRetry: () => void }) {
  return (
    <Empty
      title="Cancelled"
      actions={
        <button type="button" className="button" onClick={onRetry}>
          Load {what}
        </button>
      }
    />
  );
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function capitalised(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** For how long `isRunning` has been true, in ms: 0 at first, then `PROGRESS_AFTER_MS`, then whole seconds. */
function usePassed(isRunning: boolean): number {
  const [passed, setPassed] = useState(0);
  useEffect(() => {
    if (!isRunning) return undefined;
    const progress = setTimeout(() => setPassed(PROGRESS_AFTER_MS), PROGRESS_AFTER_MS);
    const seconds = setInterval(() => setPassed((before) => Math.floor(before / 1000) * 1000 + 1000), 1000);
    return () => {
      clearTimeout(progress);
      clearInterval(seconds);
      setPassed(0);
    };
  }, [isRunning]);
  return passed;
}
