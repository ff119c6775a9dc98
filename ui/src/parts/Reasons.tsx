import type { Reason } from "../api/answers";

/** Why there are no samples, or not what one might expect; the most likely first, each with what to do. */
export function Reasons({ reasons }: { reasons: readonly Reason[] }) {
  return (
    <ul className="reasons">
      {reasons.map((reason) => (
        <li key={reason.code}>
          {sentence(reason.text)}
          {reason.hint && <span className="muted"> {sentence(reason.hint)}</span>}
        </li>
      ))}
    </ul>
  );
}

/** The server writes without capital and full stop. */
function sentence(text: string): string {
  const end = /[.!?]$/.test(text) ? "" : ".";
  return text.charAt(0).toUpperCase() + text.slice(1) + end;
}
