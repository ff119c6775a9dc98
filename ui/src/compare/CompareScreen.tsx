/** Compare: two selections side by side, as one diff flame graph and as a ranked table of what changed. */

import { useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback, useMemo } from "react";

import type { ComparedFunction, Comparison } from "../api/answers";
import { Failure } from "../api/client";
import { comparison } from "../api/questions";
import { useQuestion } from "../api/useQuestion";
import { EvidenceLine } from "../flame/EvidenceLine";
import { FlameView } from "../flame/FlameView";
import { PRESETS, isOfPreset } from "../flame/names";
import { parseState, stateText } from "../flame/state";
import { Reasons } from "../parts/Reasons";
import { Asked, Empty } from "../parts/State";
import { TypeSelect } from "../profiles/TypeSelect";
import { useClock } from "../time/clock";
import { RankedTable } from "./RankedTable";
import { SideForm } from "./SideForm";
import "./compare.css";
import type { CompareSearch } from "./search";
import { type SideSearch, type Which, isChosen, questionOf, sideOf, sideSearch } from "./side";

export function CompareScreen() {
  const search = useSearch({ from: "/compare" });
  const clock = useClock();
  const change = useChange();
  const [base, target] = [sideOf(search, "base"), sideOf(search, "target")];
  const isAsked = isChosen(base) && isChosen(target);
  const isOfSpans = search.base_labels === undefined;
  const scope = isOfSpans && search.scope === "subtree" ? ("subtree" as const) : undefined;
  const { query, cancel } = useQuestion(
    comparison(questionOf(base, clock.range, clock.now), questionOf(target, clock.range, clock.now), {
      type: search.type,
      scope,
    }),
    { enabled: isAsked },
  );
  const { error, data } = query;
  const isMistake = error instanceof Failure && /^(?:base|target)_/.test(error.detail.field ?? "");
  const answer = isAsked && !query.isPlaceholderData ? data : undefined;
  const side = (which: Which, said: SideSearch) => (
    <SideForm
      which={which}
      side={said}
      answer={answer?.[which]}
      unit={answer?.unit ?? ""}
      error={error}
      onSide={(next) => change(sideSearch(which, next))}
    />
  );
  return (
    <div className="compare">
      <title>Compare - Spanflame</title>
      <h1 className="visually-hidden">Compare</h1>
      <div className="compare-sides">
        {side("base", base)}
        {side("target", target)}
      </div>
      <Options
        search={search}
        onSwap={() => change({ ...sideSearch("base", target), ...sideSearch("target", base), focus: undefined })}
      />
      {isAsked && !isMistake && (
        <Asked what="the comparison" query={query} onCancel={cancel}>
          {(compared) => <Compared answer={compared} />}
        </Asked>
      )}
      {!isAsked && <Invitation />}
    </div>
  );
}

function useChange(): (part: Partial<CompareSearch>) => void {
  const navigate = useNavigate({ from: "/compare" });
  return (part) => void navigate({ search: (before) => ({ ...before, ...part }) });
}

function Options({ search, onSwap }: { search: CompareSearch; onSwap: () => void }) {
  const change = useChange();
  const { scope = "span" } = search;
  return (
    <div className="compare-options">
      <TypeSelect type={search.type} onType={(type) => change({ type })} />
      {search.base_labels === undefined && (
        <span className="choices" role="group" aria-label="Scope of the profiles">
          {(["span", "subtree"] as const).map((one) => (
            <button
              key={one}
              type="button"
              className="button"
              aria-pressed={scope === one}
              title={one === "span" ? "Samples of the selected spans themselves" : "With all their descendants"}
              onClick={() => change({ scope: one === "span" ? undefined : one })}
            >
              {one}
            </button>
          ))}
        </span>
      )}
      <button type="button" className="button" onClick={onSwap}>
        Swap sides
      </button>
      <ul className="compare-legend muted" aria-label="Colours">
        <li>
          <span className="swatch more" /> more in the target
        </li>
        <li>
          <span className="swatch less" /> less
        </li>
        <li>
          <span className="swatch only-target" /> only in target
        </li>
        <li>
          <span className="swatch only-base" /> only in base
        </li>
        <li>
          <span className="swatch not-significant" /> not significant
        </li>
      </ul>
    </div>
  );
}

function Compared({ answer }: { answer: Comparison }) {
  const { focus } = useSearch({ from: "/compare" });
  const navigate = useNavigate({ from: "/compare" });
  const onFocus = useCallback(
    (next: string | undefined) => void navigate({ search: (before) => ({ ...before, focus: next }), replace: true }),
    [navigate],
  );
  const onFunction = useCallback(
    (name: string) => onFocus(stateText({ ...parseState(focus), mode: "sandwich", function: name })),
    [focus, onFocus],
  );
  const isHidden = useMemo(() => {
    const { presets, hidden } = parseState(focus);
    const chosen = PRESETS.filter((preset) => presets.includes(preset.id));
    return (row: ComparedFunction): boolean =>
      hidden.includes(row.function) || chosen.some((preset) => isOfPreset(preset, row));
  }, [focus]);
  const empty = (["base", "target"] as const).filter((which) => answer[which].samples === 0);
  if (empty.length > 0)
    return (
      <Empty title={`No samples in the ${empty.join(" and the ")}`}>
        {empty.map((which) => (
          <Reasons key={which} reasons={answer[which].evidence.reasons} />
        ))}
        <p>There is nothing to compare. Choose other spans, a longer range, or the scope subtree.</p>
      </Empty>
    );
  return (
    <>
      <div className="compare-flame">
        <FlameView profile={answer} focus={focus} onFocus={onFocus} />
      </div>
      <RankedTable answer={answer} isHidden={isHidden} onFunction={onFunction} />
      <div className="compare-sides compare-evidence">
        <EvidenceLine samples={answer.base.samples} evidence={answer.base.evidence} />
        <EvidenceLine samples={answer.target.samples} evidence={answer.target.evidence} />
      </div>
    </>
  );
}

/** Pairs that people ask for first. */
const EXAMPLES: readonly { text: string; base: SideSearch; target: SideSearch }[] = [
  {
    text: "Slow requests against fast ones",
    base: { q: "{ kind = server && duration < 500ms }" },
    target: { q: "{ kind = server && duration >= 500ms }" },
  },
  {
    text: "Failed requests against the others",
    base: { q: "{ kind = server && status != error }" },
    target: { q: "{ kind = server && status = error }" },
  },
  {
    text: "The last 15 minutes against those before",
    base: { labels: "{}", start: "now-30m", end: "now-15m" },
    target: { labels: "{}", start: "now-15m", end: "now" },
  },
];

function Invitation() {
  const change = useChange();
  return (
    <Empty title="Choose what to compare">
      <p>
        Each side is spans of a query, one trace or span, or profiles by label, each in its own time. The target is what
        one wonders about, the base what it is held against.
      </p>
      <div className="compare-examples">
        {EXAMPLES.map(({ text, base, target }) => (
          <button
            key={text}
            type="button"
            className="button"
            onClick={() => change({ ...sideSearch("base", base), ...sideSearch("target", target) })}
          >
            {text}
          </button>
        ))}
      </div>
    </Empty>
  );
}
