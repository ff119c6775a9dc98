import { useEffect, useState } from "react";

/** How long the button says that it worked. */
const TOLD_MS = 1_500;

/** Copies a text; what to say of it, for a moment. */
function useCopy(): { told: string | null; copy: (text: string) => Promise<void> } {
  const [told, setTold] = useState<"Copied" | "Copy it by hand" | null>(null);
  useEffect(() => {
    if (!told) return undefined;
    const timer = setTimeout(() => setTold(null), TOLD_MS);
    return () => clearTimeout(timer);
  }, [told]);

  async function copy(text: string): Promise<void> {
    try {
      await navigator.clipboard.writeText(text);
      setTold("Copied");
    } catch {
      // Without TLS browsers hide the clipboard on all but loopback addresses.
      setTold("Copy it by hand");
    }
  }
  return { told, copy };
}

/** Copies the address of what is on screen, which holds all of its state. */
export function CopyLink() {
  const { told, copy } = useCopy();
  return (
    <button
      type="button"
      className="button"
      title="Copy the address of what is on screen"
      onClick={() => void copy(window.location.href)}
    >
      {told ?? "Copy link"}
    </button>
  );
}

/** Code with a button that copies it. */
export function Copyable({ code, label }: { code: string; label: string }) {
  const { told, copy } = useCopy();
  return (
    <div className="copyable">
      {/* It scrolls sideways, so it must be reachable by keyboard. */}
      <pre tabIndex={0} aria-label={label}>
        {code}
      </pre>
      <button type="button" className="button small" aria-label={`Copy: ${label}`} onClick={() => void copy(code)}>
        {told ?? "Copy"}
      </button>
    </div>
  );
}
