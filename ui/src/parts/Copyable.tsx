import { useEffect, useState } from "react";

/** How long the button says that it worked. */
const TOLD_MS = 1_500;

/** Code with a button that copies it. */
export function Copyable({ code, label }: { code: string; label: string }) {
  const [told, setTold] = useState<"copied" | "select it by hand" | null>(null);
  useEffect(() => {
    if (!told) return undefined;
    const timer = setTimeout(() => setTold(null), TOLD_MS);
    return () => clearTimeout(timer);
  }, [told]);

  async function copy(): Promise<void> {
    try {
      await navigator.clipboard.writeText(code);
      setTold("copied");
    } catch {
      // Without TLS browsers hide the clipboard on all but loopback addresses.
      setTold("select it by hand");
    }
  }

  return (
    <div className="copyable">
      {/* It scrolls sideways, so it must be reachable by keyboard. */}
      <pre tabIndex={0} aria-label={label}>
        {code}
      </pre>
      <button type="button" className="button small" aria-label={`Copy: ${label}`} onClick={() => void copy()}>
        {told ?? "Copy"}
      </button>
    </div>
  );
}
