/** Conditions by mouse: an attribute, then one of its values, which joins the query. Most frequent first, of what the query selects. */

import { useState } from "react";

import type { AttributeScope } from "../api/answers";
import { attributeValues, attributes } from "../api/questions";
import { useQuestion } from "../api/useQuestion";
import { Popover, useClosePopover } from "../parts/Popover";
import { Asked } from "../parts/State";
import { counted } from "../text/quantity";
import type { TimeRange } from "../time/range";
import { equals, field, withConditions } from "./text";

interface Attribute {
  scope: AttributeScope;
  key: string;
}

/** What every span has, and is looked for first. */
const ALWAYS: readonly Attribute[] = [
  { scope: "intrinsic", key: "service" },
  { scope: "intrinsic", key: "name" },
  { scope: "intrinsic", key: "status" },
  { scope: "intrinsic", key: "kind" },
];

/** Not among those that are always offered. */
function isOther({ scope, key }: Attribute): boolean {
  return scope !== "intrinsic" && !(scope === "resource" && key === "service.name");
}

export function FilterMenu({ q, range, onRun }: { q: string; range: TimeRange; onRun: (q: string) => void }) {
  return (
    <Popover button="Filter" label="Add a condition" title="Add a condition to the query" className="filter-menu">
      <Menu q={q} range={range} onChoose={(condition) => onRun(withConditions(q, [condition]))} />
    </Popover>
  );
}

function Menu({ q, range, onChoose }: { q: string; range: TimeRange; onChoose: (condition: string) => void }) {
  const close = useClosePopover();
  const [chosen, setChosen] = useState<Attribute | null>(null);
  const [wanted, setWanted] = useState("");
  const { query } = useQuestion(attributes({ q, ...range }));
  if (chosen) {
    const choose = (condition: string): void => {
      close();
      onChoose(condition);
    };
    return <Values q={q} range={range} attribute={chosen} onBack={() => setChosen(null)} onChoose={choose} />;
  }
  return (
    <>
      <input
        // The menu was just opened to choose something.
        // oxlint-disable-next-line jsx-a11y/no-autofocus
        autoFocus
        className="field"
        type="search"
        aria-label="Find an attribute"
        placeholder="Attribute"
        value={wanted}
        onChange={(event) => setWanted(event.target.value)}
      />
      <Asked what="the attributes" query={query}>
        {(answer) => (
          <ul>
            {[...ALWAYS, ...answer.attributes.filter(isOther)]
              .filter((one) => field(one.scope, one.key).toLowerCase().includes(wanted.trim().toLowerCase()))
              .map((one) => (
                <li key={`${one.scope} ${one.key}`}>
                  <button type="button" className="menu-line mono" onClick={() => setChosen(one)}>
                    <bdi className="cut">{field(one.scope, one.key)}</bdi>
                    <span className="muted">{"spans" in one ? counted(Number(one.spans), "span") : ""}</span>
                  </button>
                </li>
              ))}
          </ul>
        )}
      </Asked>
    </>
  );
}

interface ValuesProps {
  q: string;
  range: TimeRange;
  attribute: Attribute;
  onBack: () => void;
  onChoose: (condition: string) => void;
}

function Values({ q, range, attribute, onBack, onChoose }: ValuesProps) {
  const { query } = useQuestion(attributeValues(attribute.scope, attribute.key, { q, ...range }));
  return (
    <>
      <div className="menu-head">
        <button type="button" className="button small" onClick={onBack}>
          Back
        </button>
        <bdi className="mono cut">{field(attribute.scope, attribute.key)}</bdi>
      </div>
      <Asked what="the values" query={query}>
        {(answer) => (
          <ul>
            {answer.values.map((one) => {
              const condition = equals(attribute.scope, attribute.key, one.value, one.value_type);
              return (
                <li key={`${one.value_type} ${one.value}`}>
                  <button
                    type="button"
                    className="menu-line mono"
                    disabled={condition === null}
                    onClick={() => condition !== null && onChoose(condition)}
                  >
                    <bdi className="cut">{one.value === "" ? '""' : one.value}</bdi>
                    <span className="muted">{counted(one.spans, "span")}</span>
                  </button>
                </li>
              );
            })}
            {answer.truncated && (
              <li className="muted menu-note">There are more values: type the beginning in the query.</li>
            )}
          </ul>
        )}
      </Asked>
    </>
  );
}
