/** What one span, or the whole trace, was doing: flame graph, timeline, attributes, and what the answer rests on. */

import { Link, useNavigate, useSearch } from "@tanstack/react-router";

import type { Evidence, Profile, ProfileScope, Span } from "../api/answers";
import { address } from "../api/client";
import { traceProfile } from "../api/questions";
import { useQuestion } from "../api/useQuestion";
import { FlameView } from "../flame/FlameView";
import { plain } from "../flame/paint";
import { Reasons } from "../parts/Reasons";
import { Asked, Empty } from "../parts/State";
import { PROFILE_TYPE_DEFAULT, profileTypeName } from "../text/profileType";
import { counted, duration, frequency, value } from "../text/quantity";
import { instant } from "../time/instant";
import { nano, offsetNs } from "../time/nano";
import { useZone } from "../time/zone";
import { equals, serviceQuery, withConditions } from "../traceql/text";
import { SpanDetails } from "./SpanDetails";
import { Timeline } from "./Timeline";
import type { TraceSearch } from "./search";

const SCOPES: readonly { scope: ProfileScope; title: string }[] = [
  { scope: "span", title: "The span itself" },
  { scope: "subtree", title: "The span with its descendants, in all services" },
  { scope: "trace", title: "The whole trace, all services" },
  { scope: "window", title: "What ran at the same time and place, for samples without ids" },
];

const TABS = [
  { tab: "flame", name: "Profile" },
  { tab: "timeline", name: "Timeline" },
  { tab: "attributes", name: "Attributes" },
] as const;
type Tab = (typeof TABS)[number]["tab"];

export interface SpanPanelProps {
  traceId: string;
  /** Absent: the whole trace. */
  span: Span | undefined;
  /** Every type that a span of the trace has samples of. */
  types: readonly string[];
  onClose: () => void;
}

export function SpanPanel({ traceId, span, types, onClose }: SpanPanelProps) {
  const search = useSearch({ from: "/trace/$traceId" });
  const navigate = useNavigate({ from: "/trace/$traceId" });
  const change = (part: Partial<TraceSearch>): void => void navigate({ search: (before) => ({ ...before, ...part }) });
  const tab: Tab = TABS.find((one) => one.tab === search.tab)?.tab ?? "flame";
  const scope: ProfileScope = span ? (SCOPES.find((one) => one.scope === search.scope)?.scope ?? "span") : "trace";
  return (
    <aside className="span-panel" aria-label="Profile and attributes">
      <header className="span-panel-head">
        <h2 className="cut">
          {span ? (
            <>
              <bdi className="muted">{plain(span.service)}</bdi> <bdi>{plain(span.name) || "(no name)"}</bdi>
            </>
          ) : (
            "Whole trace"
          )}
        </h2>
        {span && <span className="mono">{duration(span.duration_ns)}</span>}
        <button
          type="button"
          className="button small plain"
          aria-label="Close the panel"
          title="Close ( Esc )"
          onClick={onClose}
        >
          ×
        </button>
      </header>
      <div className="span-panel-choices">
        {span && (
          <span className="choices" role="group" aria-label="Scope of the profile">
            {SCOPES.map((one) => (
              <button
                key={one.scope}
                type="button"
                className="button small"
                title={one.title}
                aria-pressed={scope === one.scope}
                onClick={() => change({ scope: one.scope === "span" ? undefined : one.scope, focus: undefined })}
              >
                {one.scope}
              </button>
            ))}
          </span>
        )}
        <TypeChoice types={types} value={search.type} onChange={(type) => change({ type, focus: undefined })} />
        <span className="choices" role="group" aria-label="What is shown">
          {TABS.filter((one) => span || one.tab !== "attributes").map((one) => (
            <button
              key={one.tab}
              type="button"
              className="button small"
              aria-pressed={tab === one.tab}
              onClick={() => change({ tab: one.tab === "flame" ? undefined : one.tab })}
            >
              {one.name}
            </button>
          ))}
        </span>
      </div>
      {search.start && search.end && (
        <Restricted search={search} span={span} onClear={() => change({ start: undefined, end: undefined })} />
      )}
      {tab === "attributes" && span ? (
        <SpanDetails span={span} />
      ) : tab === "timeline" ? (
        <Timeline
          traceId={traceId}
          span={span}
          scope={scope}
          onStretch={(start, end) => change({ start, end, tab: undefined })}
        />
      ) : (
        <ProfileOf traceId={traceId} span={span} scope={scope} />
      )}
    </aside>
  );
}

function TypeChoice({
  types,
  value,
  onChange,
}: {
  types: readonly string[];
  value: string | undefined;
  onChange: (type: string | undefined) => void;
}) {
  const chosen = value ?? PROFILE_TYPE_DEFAULT;
  const offered = [...new Set([PROFILE_TYPE_DEFAULT, ...types, chosen])];
  return (
    <select
      className="field small"
      aria-label="Profile type"
      value={chosen}
      onChange={(event) => onChange(event.target.value === PROFILE_TYPE_DEFAULT ? undefined : event.target.value)}
    >
      {offered.map((type) => (
        <option key={type} value={type}>
          {profileTypeName(type)}
        </option>
      ))}
    </select>
  );
}

/** The profile is of a stretch of the span only, and how to leave that. */
function Restricted({ search, span, onClear }: { search: TraceSearch; span: Span | undefined; onClear: () => void }) {
  const [zone] = useZone();
  const [start, end] = [search.start ?? "0", search.end ?? "0"];
  const from = span ? `+${duration(offsetNs(start, span.start_unix_nano))}` : instant(nano(start), zone);
  return (
    <p className="notice">
      Only {duration(offsetNs(end, start))} from {from} on.{" "}
      <button type="button" className="button small" onClick={onClear}>
        Whole {span ? "span" : "trace"}
      </button>
    </p>
  );
}

function ProfileOf({ traceId, span, scope }: { traceId: string; span: Span | undefined; scope: ProfileScope }) {
  const { type, start, end, focus } = useSearch({ from: "/trace/$traceId" });
  const navigate = useNavigate({ from: "/trace/$traceId" });
  const at = { traceId, spanId: span?.span_id };
  const { query, cancel } = useQuestion(traceProfile(at, { scope, type, start, end }));
  const path = span ? `/traces/${traceId}/spans/${span.span_id}/profile` : `/traces/${traceId}/profile`;
  return (
    <Asked what="the profile" query={query} onCancel={cancel}>
      {(profile) =>
        profile.samples > 0 ? (
          <>
            <EvidenceLine profile={profile} type={type} />
            <FlameView
              profile={profile}
              focus={focus}
              onFocus={(next) => void navigate({ search: (before) => ({ ...before, focus: next }) })}
              addressOf={(format) => address(path, { ...(span ? { scope } : {}), type, start, end, format })}
            />
            {profile.evidence.reasons.length > 0 && <Reasons reasons={profile.evidence.reasons} />}
          </>
        ) : (
          <NothingSampled profile={profile} span={span} scope={scope} />
        )
      }
    </Asked>
  );
}

/** `1.71 s CPU · 171 samples · 100 Hz · linked: 171 span · 3 ambiguous`. */
function EvidenceLine({ profile, type }: { profile: Profile; type: string | undefined }) {
  const { evidence } = profile;
  const parts = [
    `${value(profile.total, profile.unit)} ${profileTypeName(type ?? PROFILE_TYPE_DEFAULT)}`,
    counted(profile.samples, "sample"),
    evidence.period_ns ? frequency(evidence.period_ns) : "",
    precisionText(evidence),
    evidence.ambiguous > 0 ? `${counted(evidence.ambiguous, "ambiguous sample")} left out or shared` : "",
    evidence.window_match ? `matched by ${evidence.window_match}` : "",
    evidence.unresolved_frames > 0 ? `${counted(evidence.unresolved_frames, "frame")} without a name` : "",
  ];
  return (
    <p className="figures mono" aria-label="Evidence">
      {parts.filter(Boolean).join(" · ")}
    </p>
  );
}

function precisionText({ precision }: Evidence): string {
  const said = [
    precision.span > 0 ? "to the span" : "",
    precision.local_root > 0 ? "to the local root" : "",
    precision.trace > 0 ? "to the trace" : "",
    precision.window > 0 ? "by time and place" : "",
  ].filter(Boolean);
  return said.length > 0 ? `linked ${said.join(", ")}` : "";
}

function NothingSampled({ profile, span, scope }: { profile: Profile; span: Span | undefined; scope: ProfileScope }) {
  const { reasons } = profile.evidence;
  return (
    <Empty
      title={span ? `No samples in scope ${scope}` : "No samples in this trace"}
      actions={
        span && (
          <>
            <ScopeLink scope="subtree" hidden={scope === "subtree"}>
              With its descendants
            </ScopeLink>
            <ScopeLink scope="window" hidden={scope === "window"}>
              What ran meanwhile
            </ScopeLink>
            <Link
              className="button"
              to="/spans"
              search={{
                q: withConditions(serviceQuery(span.service), [
                  equals("intrinsic", "name", span.name, "string") ?? "true",
                ]),
              }}
            >
              Spans like this
            </Link>
          </>
        )
      }
    >
      {reasons.length > 0 ? <Reasons reasons={reasons} /> : <p>Nothing was sampled.</p>}
    </Empty>
  );
}

function ScopeLink({ scope, hidden, children }: { scope: ProfileScope; hidden: boolean; children: string }) {
  const navigate = useNavigate({ from: "/trace/$traceId" });
  if (hidden) return null;
  return (
    <button
      type="button"
      className="button"
      onClick={() => void navigate({ search: (before) => ({ ...before, scope }) })}
    >
      {children}
    </button>
  );
}
