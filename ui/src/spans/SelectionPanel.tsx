/** What the selected spans did: their merged flame graph, what it rests on, and which attribute values they have in common. */

import { Link, useNavigate, useSearch } from "@tanstack/react-router";

import type { SelectionProfile } from "../api/answers";
import { address } from "../api/client";
import { profileTypes, spansProfile } from "../api/questions";
import { useQuestion } from "../api/useQuestion";
import { FlameView } from "../flame/FlameView";
import { Reasons } from "../parts/Reasons";
import { Asked, Empty } from "../parts/State";
import { PROFILE_TYPE_DEFAULT, profileTypeName } from "../text/profileType";
import { count, counted, frequency, value } from "../text/quantity";
import { useClock } from "../time/clock";
import { clock as clockText } from "../time/instant";
import { rangeSearch } from "../time/range";
import { useZone } from "../time/zone";
import { OverRepresentedAttributes } from "./OverRepresentedAttributes";
import { type Region, durationsText, isOutside, restOf, selectionOf } from "./region";

export function SelectionPanel({ q, region, onClear }: { q: string; region: Region | null; onClear: () => void }) {
  const clock = useClock();
  const search = useSearch({ from: "/spans" });
  const navigate = useNavigate({ from: "/spans" });
  const selection = selectionOf(q, clock.range, region);
  const asked = { ...selection, type: search.type, scope: search.scope };
  const { query, cancel } = useQuestion(spansProfile(selection, { type: search.type, scope: search.scope }));
  return (
    <aside className="selection" aria-label="Selected spans">
      <header className="selection-head">
        <Chosen region={region} onClear={onClear} />
        <ScopeChoice />
        <TypeChoice />
        <CompareLink q={q} region={region} />
      </header>
      <Asked what="the profile of the selection" query={query} onCancel={cancel}>
        {(profile) => (
          <>
            <Figures profile={profile} />
            {profile.samples > 0 ? (
              <FlameView
                profile={profile}
                requests={profile.selection.spans}
                addressOf={(format) => address("/spans/profile", { ...asked, format })}
                focus={search.focus}
                onFocus={(focus) => void navigate({ search: (before) => ({ ...before, focus }), replace: true })}
              />
            ) : (
              <NoSamples profile={profile} />
            )}
          </>
        )}
      </Asked>
      <OverRepresentedAttributes q={q} region={region} />
    </aside>
  );
}

function Chosen({ region, onClear }: { region: Region | null; onClear: () => void }) {
  const [zone] = useZone();
  const { range } = useClock();
  if (region === null) return <span className="chosen muted">All matching spans</span>;
  const isTimed = region.start !== undefined || region.end !== undefined;
  const at = (point: bigint): string => clockText(point, zone, { beside: range.start });
  return (
    <span className="chosen">
      {durationsText(region)}
      {isTimed && `, ${at(region.start ?? range.start)} to ${at(region.end ?? range.end)}`}
      {isOutside(range, region) && <span className="error-text"> (outside of the range)</span>}{" "}
      <button type="button" className="button small" title="Clear the selection ( Esc )" onClick={onClear}>
        Clear
      </button>
    </span>
  );
}

function ScopeChoice() {
  const { scope = "span" } = useSearch({ from: "/spans" });
  const navigate = useNavigate({ from: "/spans" });
  const choose = (next: "span" | "subtree") =>
    void navigate({ search: (before) => ({ ...before, scope: next === "span" ? undefined : next }) });
  return (
    <span className="choices" role="group" aria-label="Scope of the profile">
      <button
        type="button"
        className="button small"
        aria-pressed={scope === "span"}
        title="Samples of the selected spans themselves"
        onClick={() => choose("span")}
      >
        span
      </button>
      <button
        type="button"
        className="button small"
        aria-pressed={scope === "subtree"}
        title="With all their descendants; each sample counts once"
        onClick={() => choose("subtree")}
      >
        subtree
      </button>
    </span>
  );
}

function TypeChoice() {
  const { type = PROFILE_TYPE_DEFAULT } = useSearch({ from: "/spans" });
  const navigate = useNavigate({ from: "/spans" });
  const { range } = useClock();
  const { query } = useQuestion(profileTypes(range));
  const known = query.data?.profile_types.map((one) => one.type) ?? [];
  const offered = [...new Set([PROFILE_TYPE_DEFAULT, ...known, type])];
  return (
    <select
      className="field small"
      aria-label="Profile type"
      value={type}
      onChange={(event) =>
        void navigate({
          search: (before) => ({
            ...before,
            type: event.target.value === PROFILE_TYPE_DEFAULT ? undefined : event.target.value,
          }),
        })
      }
    >
      {offered.map((one) => (
        <option key={one} value={one}>
          {profileTypeName(one)}
        </option>
      ))}
    </select>
  );
}

function CompareLink({ q, region }: { q: string; region: Region | null }) {
  const clock = useClock();
  const search = useSearch({ from: "/spans" });
  const rest = restOf(q, clock.range, region);
  if (rest === null) return null;
  const target = selectionOf(q, clock.range, region);
  return (
    <Link
      className="button small"
      to="/compare"
      title="A diff of the selected spans to the other ones"
      search={{
        ...rangeSearch(clock.text),
        type: search.type,
        scope: search.scope,
        base_q: rest.q,
        base_start: String(rest.start),
        base_end: String(rest.end),
        base_range: rest.range,
        target_q: target.q,
        target_start: String(target.start),
        target_end: String(target.end),
        target_range: target.range,
      }}
    >
      Diff to the rest
    </Link>
  );
}

/** `312 spans, 41 without samples · 2,871 samples · 19 Hz · 484 ms CPU per request`. */
function Figures({ profile }: { profile: SelectionProfile }) {
  const search = useSearch({ from: "/spans" });
  const { spans, without_samples } = profile.selection;
  const period = profile.evidence.period_ns;
  const isCost = profile.samples > 0 && profile.per_span !== undefined && spans > 0;
  const parts = [
    `${counted(spans, "span")}, ${count(without_samples)} without samples`,
    counted(profile.samples, "sample"),
    period ? frequency(period) : null,
    isCost
      ? `${value(profile.per_span ?? 0, profile.unit)} ${profileTypeName(search.type ?? PROFILE_TYPE_DEFAULT)} per span`
      : null,
  ];
  return <p className="figures mono">{parts.filter(Boolean).join(" · ")}</p>;
}

function NoSamples({ profile }: { profile: SelectionProfile }) {
  const { reasons } = profile.evidence;
  return (
    <Empty title="No samples in these spans">
      {reasons.length > 0 ? <Reasons reasons={reasons} /> : <p>None of the spans was sampled.</p>}
    </Empty>
  );
}
