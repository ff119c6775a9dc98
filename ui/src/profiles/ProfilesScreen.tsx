/** Profiles: what services cost over time, and the flame graph of any stretch of it. */

import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useState } from "react";

import { Failure, address } from "../api/client";
import { labelledProfile, labels, profileSeries } from "../api/questions";
import { useQuestion } from "../api/useQuestion";
import { EvidenceLine } from "../flame/EvidenceLine";
import { FlameView } from "../flame/FlameView";
import { Reasons } from "../parts/Reasons";
import { Asked, Empty } from "../parts/State";
import { PROFILE_TYPE_DEFAULT, profileTypeName } from "../text/profileType";
import { duration, value } from "../text/quantity";
import { useClock } from "../time/clock";
import { clock as clockText } from "../time/instant";
import { type TimeRange, lengthNs } from "../time/range";
import { useZone } from "../time/zone";
import { LabelBar } from "./LabelBar";
import { SeriesChart } from "./SeriesChart";
import { SeriesTable } from "./SeriesTable";
import { TypeSelect } from "./TypeSelect";
import "./profiles.css";
import type { ProfilesSearch } from "./search";
import { parseStretch, seriesSelector, stretchText } from "./selector";

const BY_DEFAULT = "service.name";
const BUCKETS = 100;
const SERIES_MAX = 15;

export function ProfilesScreen() {
  const { q = "", type, by = BY_DEFAULT, sel } = useSearch({ from: "/profiles" });
  const change = useChange();
  const clock = useClock();
  const { query, cancel } = useQuestion(
    profileSeries(clock.range, { q, type, buckets: BUCKETS, by: [by], limit: SERIES_MAX }),
  );
  const stretch = parseStretch(sel);
  const mistake = query.error instanceof Failure && query.error.detail.field === "q" ? query.error.message : undefined;
  return (
    <div className="profiles">
      <title>{`${q || "Profiles"} - Spanflame`}</title>
      <h1 className="visually-hidden">Profiles</h1>
      <div className="profiles-query">
        <LabelBar
          q={q}
          label="Label selector"
          failure={mistake}
          onRun={(next) => (next === q ? clock.refresh() : change({ q: next || undefined }))}
        >
          <TypeSelect type={type} onType={(next) => change({ type: next })} />
          <BySelect by={by} />
          <Link className="button" to="/view" title="Look at a file without storing it">
            Open a file
          </Link>
        </LabelBar>
      </div>
      {mistake === undefined && (
        <>
          <Asked what="the profiles over time" query={query} onCancel={cancel}>
            {(answer) =>
              answer.series.length === 0 ? (
                <Empty title="No profiles">
                  {answer.evidence.reasons.length > 0 ? (
                    <Reasons reasons={answer.evidence.reasons} />
                  ) : (
                    <p>Nothing in this range matches. Take a label out, or choose another type or a longer range.</p>
                  )}
                </Empty>
              ) : (
                <Series
                  answer={answer}
                  stretch={stretch}
                  onStretch={(next) => change({ sel: next ? stretchText(next) : undefined })}
                  onSeries={(chosen) => change({ q: seriesSelector(q, chosen, [by]) })}
                />
              )
            }
          </Asked>
          <Stretch stretch={stretch} />
        </>
      )}
    </div>
  );
}

function useChange(): (part: Partial<ProfilesSearch>) => void {
  const navigate = useNavigate({ from: "/profiles" });
  return (part) => void navigate({ search: (before) => ({ ...before, ...part }) });
}

function BySelect({ by }: { by: string }) {
  const change = useChange();
  const { range } = useClock();
  const { query } = useQuestion(labels(range));
  const known = [...new Set([BY_DEFAULT, ...(query.data?.labels ?? []), by])];
  return (
    <select
      className="field"
      aria-label="Group by label"
      title="A line for each value of this label"
      value={by}
      onChange={(event) => change({ by: event.target.value === BY_DEFAULT ? undefined : event.target.value })}
    >
      {known.map((one) => (
        <option key={one} value={one}>
          by {one}
        </option>
      ))}
    </select>
  );
}

type SeriesProps = Parameters<typeof SeriesTable>[0] & Parameters<typeof SeriesChart>[0];

function Series({ answer, stretch, onStretch, onSeries }: Omit<SeriesProps, "bucket" | "onHover">) {
  const [bucket, setBucket] = useState<number | null>(null);
  const name = profileTypeName(useSearch({ from: "/profiles" }).type ?? PROFILE_TYPE_DEFAULT);
  return (
    <section className="series" aria-label="Over time">
      <p className="muted series-unit">
        {name} per {duration(answer.bucket_ns)}; drag to choose a stretch
      </p>
      <SeriesChart answer={answer} stretch={stretch} onHover={setBucket} onStretch={onStretch} />
      <div className="series-table">
        <SeriesTable answer={answer} bucket={bucket} onSeries={onSeries} />
      </div>
    </section>
  );
}

/** The flame graph of the chosen stretch, or of the whole range. */
function Stretch({ stretch }: { stretch: TimeRange | null }) {
  const { q = "", type, focus } = useSearch({ from: "/profiles" });
  const navigate = useNavigate({ from: "/profiles" });
  const change = useChange();
  const { range } = useClock();
  const asked = stretch ?? range;
  const { query, cancel } = useQuestion(labelledProfile(asked, { q, type }));
  return (
    <section className="profiles-flame" aria-label="Flame graph">
      <p className="profiles-stretch">
        <StretchText stretch={stretch} />
        {stretch && (
          <>
            <button type="button" className="button small" onClick={() => change({ sel: undefined })}>
              Whole range
            </button>
            <button
              type="button"
              className="button small"
              onClick={() => change({ sel: undefined, start: String(stretch.start), end: String(stretch.end) })}
            >
              Zoom in
            </button>
            <CompareBefore stretch={stretch} q={q} type={type} />
          </>
        )}
      </p>
      <Asked what="the profile" query={query} onCancel={cancel}>
        {(profile) =>
          profile.samples === 0 ? (
            <Empty title="No samples in this stretch">
              <Reasons reasons={profile.evidence.reasons} />
            </Empty>
          ) : (
            <>
              <p className="mono figures">
                {value(profile.total, profile.unit)} in {duration(lengthNs(asked))}
              </p>
              <FlameView
                profile={profile}
                addressOf={(format) => address("/profile", { q, type, start: asked.start, end: asked.end, format })}
                focus={focus}
                onFocus={(next) => void navigate({ search: (before) => ({ ...before, focus: next }), replace: true })}
              />
              <EvidenceLine samples={profile.samples} evidence={profile.evidence} />
            </>
          )
        }
      </Asked>
    </section>
  );
}

function StretchText({ stretch }: { stretch: TimeRange | null }) {
  const [zone] = useZone();
  const { range } = useClock();
  if (!stretch) return <span className="muted">Whole range</span>;
  const at = (point: bigint): string => clockText(point, zone, { beside: range.start });
  return (
    <span>
      {at(stretch.start)} to {at(stretch.end)} ({duration(lengthNs(stretch))})
    </span>
  );
}

/** The stretch against one of the same length right before it. */
function CompareBefore({ stretch, q, type }: { stretch: TimeRange; q: string; type: string | undefined }) {
  const length = stretch.end - stretch.start;
  const from = stretch.start > length ? stretch.start - length : 0n;
  return (
    <Link
      className="button small"
      to="/compare"
      title="A diff to as much time right before"
      search={{
        type,
        base_labels: q || "{}",
        base_start: String(from),
        base_end: String(stretch.start),
        target_labels: q || "{}",
        target_start: String(stretch.start),
        target_end: String(stretch.end),
      }}
    >
      Diff to before
    </Link>
  );
}
