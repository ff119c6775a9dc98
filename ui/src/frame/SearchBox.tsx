/** The search box: a trace id opens the trace, TraceQL or a service's name its spans. It says which before one presses Enter. */

import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type RefObject, useState } from "react";

import { services } from "../api/questions";
import { Suggestions, useSuggestionList } from "../parts/suggestions";
import { counted } from "../text/quantity";
import { useClock } from "../time/clock";
import { rangeSearch } from "../time/range";
import { serviceQuery } from "../traceql/text";
import { type Target, named, targetOf } from "./target";

/** Services that are listed at most. */
const SERVICES_MAX = 12;

interface Line {
  key: string;
  text: string;
  detail: string;
  target: Target;
}

export function SearchBox({ field }: { field: RefObject<HTMLInputElement | null> }) {
  const [text, setText] = useState("");
  const [isFocused, setFocused] = useState(false);
  const clock = useClock();
  const navigate = useNavigate();
  const lines = useLines(text, isFocused);
  const list = useSuggestionList(lines.length, take);

  function take(at: number): void {
    go(lines[at].target);
  }

  function go(target: Target | null): void {
    if (!target) return;
    setText("");
    field.current?.blur();
    if (target.to === "trace") void navigate({ to: "/trace/$traceId", params: { traceId: target.traceId } });
    else void navigate({ to: "/spans", search: { ...rangeSearch(clock.text), q: target.q } });
  }

  return (
    <search className="frame-search">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          // Half a name means the first service that has it; nothing typed means nothing, although all are listed.
          if (text.trim() !== "") go(lines[0]?.target ?? targetOf(text));
        }}
      >
        <input
          ref={field}
          className="field mono"
          aria-label="Search: trace id, TraceQL or service"
          placeholder="Search: trace id, TraceQL, service  ( / )"
          value={text}
          onChange={(event) => {
            setText(event.target.value);
            list.open();
            list.reset();
          }}
          onFocus={() => {
            setFocused(true);
            list.open();
          }}
          onBlur={() => {
            setFocused(false);
            list.close();
          }}
          onKeyDown={(event) => {
            if (!list.onKeyDown(event) && event.key === "Escape") event.currentTarget.blur();
          }}
          {...list.fieldProps}
        />
        <Suggestions list={list} lines={lines} onTake={take} />
      </form>
    </search>
  );
}

/** The services whose name has the text in it, the exact one first, then what the text means if it is no service. */
function useLines(text: string, isFocused: boolean): Line[] {
  const clock = useClock();
  const known = useQuery({ ...services(clock.range), enabled: isFocused, staleTime: 60_000 });
  const target = targetOf(text);
  const all = known.data?.services ?? [];
  const isName = target === null || (target.to === "spans" && !text.trim().startsWith("{"));
  const found = isName ? named(all, text) : [];
  const lines = found.slice(0, SERVICES_MAX).map((one) => ({
    key: `service ${one.name}`,
    text: one.name,
    detail: `service, ${counted(one.requests, "request")}`,
    target: { to: "spans" as const, q: serviceQuery(one.name) },
  }));
  const isKnown = found[0]?.name.toLowerCase() === text.trim().toLowerCase();
  return target && !isKnown ? [...lines, meaning(text.trim(), target)] : lines;
}

function meaning(text: string, target: Target): Line {
  if (target.to === "trace") return { key: "trace", text: target.traceId, detail: "open the trace", target };
  return { key: "query", text: text.startsWith("{") ? text : target.q, detail: "spans", target };
}
