/** The search box: a trace id opens the trace, TraceQL or a service's name its spans. */

import { useNavigate } from "@tanstack/react-router";
import { useQuery } from "@tanstack/react-query";
import { type RefObject, useId, useState } from "react";

import { services } from "../api/questions";
import { useClock } from "../time/clock";
import { rangeSearch } from "../time/range";
import { targetOf } from "./target";

export function SearchBox({ field }: { field: RefObject<HTMLInputElement | null> }) {
  const [text, setText] = useState("");
  const [isFocused, setFocused] = useState(false);
  const clock = useClock();
  const navigate = useNavigate();
  const list = useId();
  const known = useQuery({ ...services(clock.range), enabled: isFocused, staleTime: 60_000 });

  function go(): void {
    const target = targetOf(text);
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
          go();
        }}
      >
        <input
          ref={field}
          className="field mono"
          type="search"
          aria-label="Search: trace id, TraceQL or service"
          placeholder="Search: trace id, TraceQL, service  ( / )"
          value={text}
          list={list}
          autoComplete="off"
          spellCheck={false}
          onChange={(event) => setText(event.target.value)}
          onFocus={() => setFocused(true)}
          onBlur={() => setFocused(false)}
          onKeyDown={(event) => {
            if (event.key === "Escape") event.currentTarget.blur();
          }}
        />
        <datalist id={list}>
          {known.data?.services.map((service) => (
            <option key={service.name} value={service.name}>
              {service.name}
            </option>
          ))}
        </datalist>
      </form>
    </search>
  );
}
