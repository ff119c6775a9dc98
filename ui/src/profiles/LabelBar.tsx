/** The label selector: typed, or put together by mouse from the labels and values that there are. */

import { type ReactNode, useState } from "react";

import { labelValues, labels } from "../api/questions";
import { useQuestion } from "../api/useQuestion";
import { Popover, useClosePopover } from "../parts/Popover";
import { Asked } from "../parts/State";
import { useClock } from "../time/clock";
import "../traceql/query-bar.css";
import { labelEquals, withLabel } from "./selector";

export function LabelBar({
  q,
  label,
  failure,
  onRun,
  children,
}: {
  q: string;
  /** Name of the field. */
  label: string;
  /** Why what runs now cannot be read. */
  failure?: string | undefined;
  onRun: (q: string) => void;
  /** Behind the field. */
  children?: ReactNode;
}) {
  const [text, setText] = useState(q);
  const [running, setRunning] = useState(q);
  if (running !== q) {
    setRunning(q);
    setText(q);
  }
  return (
    <form
      className="query-bar"
      onSubmit={(event) => {
        event.preventDefault();
        onRun(text.trim());
      }}
    >
      <Popover button="Filter" label="Add a label" title="Choose a label and its value" className="filter-menu">
        <Labels onChoose={(condition) => onRun(withLabel(text, condition))} />
      </Popover>
      <div className="query-field">
        <input
          className="field mono"
          aria-label={label}
          aria-invalid={failure !== undefined}
          placeholder='all; or service.name="cart", region=~"eu-.*"'
          spellCheck={false}
          autoComplete="off"
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
        {failure !== undefined && (
          <p className="mistake error-text" role="alert">
            {failure}
          </p>
        )}
      </div>
      <button type="submit" className="button primary">
        Run
      </button>
      {children}
    </form>
  );
}

function Labels({ onChoose }: { onChoose: (condition: string) => void }) {
  const { range } = useClock();
  const close = useClosePopover();
  const [chosen, setChosen] = useState<string | null>(null);
  const { query } = useQuestion(labels(range));
  if (chosen !== null)
    return (
      <Values
        name={chosen}
        onBack={() => setChosen(null)}
        onChoose={(value) => {
          close();
          onChoose(labelEquals(chosen, value));
        }}
      />
    );
  return (
    <Asked what="the labels" query={query}>
      {(answer) => <Lines lines={answer.labels} empty="No profile in this range has a label." onChoose={setChosen} />}
    </Asked>
  );
}

function Values({ name, onBack, onChoose }: { name: string; onBack: () => void; onChoose: (value: string) => void }) {
  const { range } = useClock();
  const { query } = useQuestion(labelValues(name, range));
  return (
    <>
      <div className="menu-head">
        <button type="button" className="button small" onClick={onBack}>
          Back
        </button>
        <bdi className="mono cut">{name}</bdi>
      </div>
      <Asked what="the values" query={query}>
        {(answer) => <Lines lines={answer.values} empty="The label has no value in this range." onChoose={onChoose} />}
      </Asked>
    </>
  );
}

/** More lines than one looks through. */
const LINES_MAX = 200;

function Lines({
  lines,
  empty,
  onChoose,
}: {
  lines: readonly string[];
  empty: string;
  onChoose: (line: string) => void;
}) {
  const [wanted, setWanted] = useState("");
  const found = lines.filter((line) => line.toLowerCase().includes(wanted.trim().toLowerCase()));
  return (
    <>
      <input
        // The menu was just opened to choose something.
        // oxlint-disable-next-line jsx-a11y/no-autofocus
        autoFocus
        className="field"
        type="search"
        aria-label="Find"
        placeholder="Find"
        value={wanted}
        onChange={(event) => setWanted(event.target.value)}
      />
      <ul>
        {found.slice(0, LINES_MAX).map((line) => (
          <li key={line}>
            <button type="button" className="menu-line mono" onClick={() => onChoose(line)}>
              <bdi className="cut">{line === "" ? '""' : line.slice(0, 300)}</bdi>
            </button>
          </li>
        ))}
        {found.length > LINES_MAX && (
          <li className="muted menu-note">{found.length - LINES_MAX} more: type a part of the name.</li>
        )}
        {found.length === 0 && (
          <li className="muted menu-note">{lines.length === 0 ? empty : "Nothing has this in it."}</li>
        )}
      </ul>
    </>
  );
}
