import type { ErrorComponentProps } from "@tanstack/react-router";

/** A fault of the page itself: a screen that could not be loaded or drawn. */
export function ScreenFailed({ error, reset }: ErrorComponentProps) {
  return (
    <section className="state failed" role="alert">
      <h2>This screen failed</h2>
      <p>{error instanceof Error ? error.message : String(error)}</p>
      <p className="muted">
        That is a fault of the page, or the server was replaced by another version while the page was open.
      </p>
      <div className="actions">
        <button type="button" className="button" onClick={reset}>
          Try again
        </button>
        <button type="button" className="button" onClick={() => window.location.reload()}>
          Reload the page
        </button>
      </div>
    </section>
  );
}
