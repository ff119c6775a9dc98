/** Everything a span says of itself: attributes, resource, events, links, ids. Values are text, never HTML. */

import { Link } from "@tanstack/react-router";

import type { AttributeMap, Span } from "../api/answers";
import { plain } from "../flame/paint";
import { count, duration } from "../text/quantity";
import { instant } from "../time/instant";
import { nano, offsetNs } from "../time/nano";
import { useZone } from "../time/zone";

/** Longer values are cut until they are opened. */
const VALUE_SHOWN_MAX = 400;

export function SpanDetails({ span }: { span: Span }) {
  const [zone] = useZone();
  const { dropped } = span;
  const own: AttributeMap = {
    "span id": span.span_id,
    ...(span.parent_span_id ? { "parent span id": span.parent_span_id } : {}),
    kind: span.kind,
    status: span.status_message ? `${span.status}: ${span.status_message}` : span.status,
    start: instant(nano(span.start_unix_nano), zone),
    duration: duration(span.duration_ns),
    ...(span.trace_state ? { "trace state": span.trace_state } : {}),
    ...(span.parent_missing ? { parent: "was not received" } : {}),
    ...(span.shared_id ? { id: "another span has the same id" } : {}),
  };
  return (
    <div className="span-details">
      <Attributes title="Span" map={own} />
      <Attributes title="Attributes" map={span.attributes} />
      {span.events.length > 0 && (
        <details open className="span-events">
          <summary>Events ({count(span.events.length)})</summary>
          {span.events.map((event, at) => (
            // Events have no ids and may repeat.
            // oxlint-disable-next-line react/no-array-index-key
            <div key={at}>
              <h4 className="mono">
                +{duration(offsetNs(event.time_unix_nano, span.start_unix_nano))} <bdi>{plain(event.name)}</bdi>
              </h4>
              <Rows map={event.attributes} />
            </div>
          ))}
        </details>
      )}
      {span.links.length > 0 && (
        <details open>
          <summary>Links ({count(span.links.length)})</summary>
          {span.links.map((link) => (
            <p key={`${link.trace_id}/${link.span_id}`} className="mono">
              <Link to="/trace/$traceId" params={{ traceId: link.trace_id }} search={{ span: link.span_id }}>
                {link.trace_id}/{link.span_id}
              </Link>
            </p>
          ))}
        </details>
      )}
      <Attributes title="Resource" map={span.resource} />
      {span.scope.name && (
        <Attributes
          title="Instrumentation"
          map={{
            name: span.scope.name,
            ...(span.scope.version ? { version: span.scope.version } : {}),
            ...span.scope.attributes,
          }}
        />
      )}
      {dropped && (dropped.attributes > 0 || dropped.events > 0 || dropped.links > 0) && (
        <p className="muted">
          The client dropped {count(dropped.attributes)} attributes, {count(dropped.events)} events and{" "}
          {count(dropped.links)} links.
        </p>
      )}
    </div>
  );
}

function Attributes({ title, map }: { title: string; map: AttributeMap }) {
  const size = Object.keys(map).length;
  if (size === 0) return null;
  return (
    <details open>
      <summary>
        {title} {title === "Span" ? "" : `(${count(size)})`}
      </summary>
      <Rows map={map} />
    </details>
  );
}

function Rows({ map }: { map: AttributeMap }) {
  return (
    <dl className="attribute-rows mono">
      {Object.entries(map).map(([key, value]) => (
        <div key={key}>
          <dt>
            <bdi>{plain(key)}</bdi>
          </dt>
          <dd>
            <Value value={value} />
          </dd>
        </div>
      ))}
    </dl>
  );
}

function Value({ value }: { value: unknown }) {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  if (text.length <= VALUE_SHOWN_MAX)
    return <bdi>{text === "" ? <span className="muted">(empty)</span> : plain(text)}</bdi>;
  return (
    <details className="long-value">
      <summary>
        <bdi>{plain(text.slice(0, VALUE_SHOWN_MAX))}...</bdi>{" "}
        <span className="muted">{count(text.length)} characters</span>
      </summary>
      <bdi>{plain(text)}</bdi>
    </details>
  );
}
