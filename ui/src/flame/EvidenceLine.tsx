import type { Evidence } from "../api/answers";
import { Reasons } from "../parts/Reasons";
import { count, counted, duration, frequency } from "../text/quantity";

/** What a profile rests on, and what of it is not as one might expect. */
export function EvidenceLine({ samples, evidence }: { samples: number; evidence: Evidence }) {
  return (
    <div className="flame-evidence muted">
      <p className="mono">{evidenceText(samples, evidence)}</p>
      {evidence.reasons.length > 0 && <Reasons reasons={evidence.reasons} />}
    </div>
  );
}

/** `171 samples · 100 Hz · linked to the span: 171 · profiles cover 1.71 s · ...`. */
export function evidenceText(samples: number, evidence: Evidence): string {
  const { precision, period_ns: period, window_match: match } = evidence;
  const links: [string, number][] = [
    ["linked to the span", precision.span],
    ["linked to the local root", precision.local_root],
    ["linked to the trace", precision.trace],
    [`matched by ${match ?? "time and place"}`, precision.window],
  ];
  return [
    counted(samples, "sample"),
    period ? frequency(period) : "",
    ...links.map(([text, number]) => (number > 0 ? `${text}: ${count(number)}` : "")),
    evidence.covered_ns > 0 ? `profiles cover ${duration(evidence.covered_ns)}` : "",
    evidence.ambiguous > 0 ? `${count(evidence.ambiguous)} more name several spans and count for none` : "",
    evidence.prorated ? `${count(evidence.prorated)} counted in proportion to the overlap in time` : "",
    evidence.unresolved_frames > 0 ? `${counted(evidence.unresolved_frames, "function")} without a name` : "",
  ]
    .filter(Boolean)
    .join(" · ");
}
