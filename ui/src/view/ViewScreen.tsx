/** View: look at a profile in a file, without storing it. */

import { keepPreviousData, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useRef } from "react";

import type { Evidence, Viewed } from "../api/answers";
import { post } from "../api/client";
import { EvidenceLine } from "../flame/EvidenceLine";
import { FlameView } from "../flame/FlameView";
import { plain } from "../flame/paint";
import { Asked, Empty } from "../parts/State";
import { Reasons } from "../parts/Reasons";
import { profileTypeName } from "../text/profileType";
import { bytes, counted, duration, value } from "../text/quantity";
import { instant, zoneName } from "../time/instant";
import { nano } from "../time/nano";
import { useZone } from "../time/zone";
import { type OpenFile, openFile, useOpenFile } from "./file";
import type { ViewSearch } from "./search";
import "./view.css";

/** What one may have to say where the server cannot find it out; the same words as for uploads. */
const FORMATS = [
  "pprof",
  "collapsed",
  "lines",
  "perf-script",
  "speedscope",
  "jfr",
  "otlp-profiles",
  "otlp-profiles-json",
] as const;
const NAME_SHOWN_MAX = 120;
/** The server looks at the end of the name only. */
const FILE_NAME_MAX = 60;
/** More profiles of one file are only shown together. */
const CHOICES_MAX = 500;

export function ViewScreen() {
  const open = useOpenFile();
  return (
    <div className="view">
      <title>{`${open ? open.file.name.slice(0, NAME_SHOWN_MAX) : "View a file"} - Spanflame`}</title>
      <h1 className="visually-hidden">View a file</h1>
      {open ? <FileView open={open} /> : <Invitation />}
    </div>
  );
}

function Invitation() {
  return (
    <Empty title="Look at a profile in a file" actions={<Chooser label="Choose a file" />}>
      <p>
        Drop a pprof, JFR, collapsed stacks, <code>perf script</code> or speedscope file anywhere onto the page, or
        choose one. The server reads it to draw it, and forgets it: nothing is stored, and a reload closes it.
      </p>
      <p>To keep a profile, upload it: spanflame upload cpu.pb.gz --service cart.</p>
    </Empty>
  );
}

function Chooser({ label }: { label: string }) {
  const input = useRef<HTMLInputElement>(null);
  const change = useChange();
  return (
    <>
      <input
        ref={input}
        type="file"
        hidden
        aria-label="Profile file"
        onChange={(event) => {
          const file = event.target.files?.[0];
          if (file) {
            openFile(file);
            change({ type: undefined, format: undefined, index: undefined, focus: undefined });
          }
          event.target.value = "";
        }}
      />
      <button type="button" className="button" onClick={() => input.current?.click()}>
        {label}
      </button>
    </>
  );
}

function useChange(): (part: Partial<ViewSearch>) => void {
  const navigate = useNavigate({ from: "/view" });
  return (part) => void navigate({ search: (before) => ({ ...before, ...part }), replace: true });
}

function FileView({ open: { id, file } }: { open: OpenFile }) {
  const { type, format, index, focus } = useSearch({ from: "/view" });
  const change = useChange();
  const client = useQueryClient();
  const queryKey = ["/view", id, type, format, index];
  const query = useQuery({
    queryKey,
    queryFn: ({ signal }) =>
      post<Viewed>("/view", { type, format, index, file: file.name.slice(-FILE_NAME_MAX) }, file, signal),
    // Only of the same file: the profile of another must not stand under this one's name.
    placeholderData: (before, asked) => (asked?.queryKey[1] === id ? keepPreviousData(before) : undefined),
    staleTime: Number.POSITIVE_INFINITY,
  });
  // How many profiles the file has is told by the answer for all of them, which comes first unless the address names one.
  const all = client.getQueryData<Viewed>(["/view", id, undefined, format, undefined]);
  return (
    <>
      <div className="view-head">
        <bdi className="mono cut view-name" title={plain(file.name)}>
          {plain(file.name.slice(0, NAME_SHOWN_MAX))}
        </bdi>
        <span className="muted">{bytes(file.size)} · not stored</span>
        <Choices viewed={query.data} profiles={all?.profiles ?? query.data?.profiles ?? 1} />
        <select
          className="field"
          aria-label="Format of the file"
          value={format ?? ""}
          onChange={(event) => change({ format: event.target.value || undefined, type: undefined, index: undefined })}
        >
          <option value="">{query.data ? `found: ${query.data.format}` : "format: find out"}</option>
          {FORMATS.map((one) => (
            <option key={one} value={one}>
              {one}
            </option>
          ))}
        </select>
        <Chooser label="Another file" />
        <button type="button" className="button" onClick={() => openFile(null)}>
          Close
        </button>
      </div>
      <Asked what="the file" query={query} onCancel={() => void client.cancelQueries({ queryKey, exact: true })}>
        {(viewed) =>
          viewed.samples === 0 ? (
            <Empty title="No samples in the file">
              <Reasons reasons={viewed.evidence.reasons} />
            </Empty>
          ) : (
            <>
              <Figures viewed={viewed} />
              <FlameView profile={viewed} focus={focus} onFocus={(next) => change({ focus: next })} />
              <EvidenceLine samples={viewed.samples} evidence={ofFile(viewed.evidence)} />
            </>
          )
        }
      </Asked>
    </>
  );
}

/** The type, and one of the profiles where the file has several. */
function Choices({ viewed, profiles }: { viewed: Viewed | undefined; profiles: number }) {
  const { index } = useSearch({ from: "/view" });
  const change = useChange();
  if (!viewed) return null;
  return (
    <>
      {(profiles > 1 || index !== undefined) && (
        <select
          className="field"
          aria-label="Profile in the file"
          value={index ?? ""}
          onChange={(event) => change({ index: event.target.value || undefined, type: undefined })}
        >
          <option value="">{profiles > 1 ? `all ${profiles} profiles` : "all profiles"}</option>
          {Array.from({ length: Math.min(CHOICES_MAX, Math.max(profiles, Number(index ?? 0) + 1)) }, (_, at) => (
            <option key={at} value={String(at)}>
              profile {at + 1}
            </option>
          ))}
        </select>
      )}
      <select
        className="field"
        aria-label="Profile type"
        value={viewed.type}
        onChange={(event) => change({ type: event.target.value })}
      >
        {viewed.types.map((one) => (
          <option key={one.type} value={one.type}>
            {profileTypeName(one.type)} ({counted(one.samples, "sample")})
          </option>
        ))}
      </select>
    </>
  );
}

/** A file was asked for whole: how its samples belong to a span or a time says nothing here. */
function ofFile(evidence: Evidence): Evidence {
  return { ...evidence, covered_ns: 0, precision: { span: 0, local_root: 0, trace: 0, window: 0 } };
}

function Figures({ viewed }: { viewed: Viewed }) {
  const [zone] = useZone();
  const labels = Object.entries(viewed.labels).map(([name, one]) => `${name}=${one}`);
  return (
    <p className="figures mono">
      {[
        `${profileTypeName(viewed.type)} ${value(viewed.total, viewed.unit)}`,
        viewed.start_unix_nano !== undefined &&
          viewed.start_unix_nano !== "0" &&
          `began ${instant(nano(viewed.start_unix_nano), zone)} ${zoneName(zone)}`,
        viewed.duration_ns !== undefined && viewed.duration_ns > 0 && `lasted ${duration(viewed.duration_ns)}`,
        plain(labels.join(", ").slice(0, 300)),
      ]
        .filter(Boolean)
        .join(" · ")}
    </p>
  );
}
