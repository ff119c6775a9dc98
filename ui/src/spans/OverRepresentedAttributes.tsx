/** Which attribute values the selected spans have more often than the other ones. A click adds the value to the query. */

import { useNavigate } from "@tanstack/react-router";

import type { AttributesComparison, OverRepresented } from "../api/answers";
import { attributesComparison } from "../api/questions";
import { useQuestion } from "../api/useQuestion";
import { Asked } from "../parts/State";
import { count, counted } from "../text/quantity";
import { percent, sampledShare } from "../text/share";
import { useClock } from "../time/clock";
import { equals, field, isEverything, withConditions } from "../traceql/text";
import { type Region, selectionOf } from "./region";

export function OverRepresentedAttributes({ q, region }: { q: string; region: Region | null }) {
  const clock = useClock();
  const target = selectionOf(q, clock.range, region);
  // Without a region the query is compared with everything: the server takes the target's spans out of the base.
  const base = selectionOf(region === null ? "" : q, clock.range, null);
  const isAsked = region !== null || !isEverything(q);
  const { query, cancel } = useQuestion(attributesComparison(base, target), { enabled: isAsked });
  return (
    <section className="attributes">
      <h2>Over-represented in the selection</h2>
      {isAsked ? (
        <Asked what="the attributes" query={query} onCancel={cancel}>
          {(answer) => <Values answer={answer} q={q} />}
        </Asked>
      ) : (
        <p className="muted hint">Drag over slow spans in the heatmap to see what they have in common.</p>
      )}
    </section>
  );
}

function Values({ answer, q }: { answer: AttributesComparison; q: string }) {
  if (answer.attributes.length === 0) {
    return (
      <p className="muted hint">
        No value is more frequent in {counted(answer.target.spans, "selected span")} than in the{" "}
        {count(answer.base.spans)} others.
      </p>
    );
  }
  return (
    <>
      <table className="table" aria-label="Over-represented attribute values">
        <thead>
          <tr>
            <th scope="col">Attribute</th>
            <th scope="col" className="number">
              here, {counted(answer.target.spans, "span")}
            </th>
            <th scope="col" className="number">
              else, {counted(answer.base.spans, "span")}
            </th>
            <th scope="col">
              <span className="visually-hidden">Both shares as bars</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {answer.attributes.map((one) => (
            <ValueRow key={`${one.scope} ${one.key} ${one.value_type} ${one.value}`} one={one} answer={answer} q={q} />
          ))}
        </tbody>
      </table>
      {answer.truncated_keys && answer.truncated_keys.length > 0 && (
        <p className="muted hint">Too many values to compare: {answer.truncated_keys.join(", ")}</p>
      )}
    </>
  );
}

function ValueRow({ one, answer, q }: { one: OverRepresented; answer: AttributesComparison; q: string }) {
  const navigate = useNavigate({ from: "/spans" });
  const condition = equals(one.scope, one.key, one.value, one.value_type);
  const name = `${field(one.scope, one.key)} = ${one.value}`;
  return (
    <tr>
      <td className="cut attribute">
        {condition === null ? (
          <bdi className="mono">{name}</bdi>
        ) : (
          <button
            type="button"
            className="link mono cut"
            title={`${name}\nAdd to the query`}
            onClick={() => void navigate({ search: (before) => ({ ...before, q: withConditions(q, [condition]) }) })}
          >
            <bdi>{field(one.scope, one.key)}</bdi> = <bdi>{one.value}</bdi>
          </button>
        )}
      </td>
      <td
        className="number"
        title={`${count(one.target_spans)} of ${counted(answer.target.spans, "span")}; 95 %: ${percent(one.target_interval.low)} to ${percent(one.target_interval.high)}`}
      >
        {shareText(one.target_spans, answer.target.spans, one.target_interval)}
      </td>
      <td
        className="number"
        title={`${count(one.base_spans)} of ${counted(answer.base.spans, "span")}; 95 %: ${percent(one.base_interval.low)} to ${percent(one.base_interval.high)}`}
      >
        {shareText(one.base_spans, answer.base.spans, one.base_interval)}
      </td>
      <td className="bars" aria-label="Shares as bars">
        <span className="bar target" style={{ width: `${one.target_share * 100}%` }} />
        <span className="bar base" style={{ width: `${one.base_share * 100}%` }} />
      </td>
    </tr>
  );
}

/** The same rule of small numbers as for samples: of few spans no bare percentage. */
function shareText(part: number, of: number, interval: { low: number; high: number }): string {
  return of === 0
    ? "-"
    : sampledShare(part, of, of, interval)
        .replace("samples", "spans")
        .replace(/ \(.*\)$/, "");
}
