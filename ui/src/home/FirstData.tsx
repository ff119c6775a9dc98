/** The page of a store without data: how to send some. It asks again by itself and gives way to Home when data arrives. */

import { Link } from "@tanstack/react-router";
import { useEffect, useState } from "react";

import { Copyable } from "../parts/Copyable";
import { recipes } from "./recipes";

/** How often it looks whether something arrived. */
const LOOK_MS = 3_000;

export function FirstData({ onLook }: { onLook: () => void }) {
  const all = recipes(window.location.origin);
  const [language, setLanguage] = useState(all[0]?.language);
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden) onLook();
    }, LOOK_MS);
    return () => clearInterval(timer);
  }, [onLook]);
  const recipe = all.find((one) => one.language === language);
  return (
    <section className="first-data">
      <h1>Nothing has arrived yet</h1>
      <p>
        Send traces and profiles to <code>{window.location.origin}</code>. This page notices within {LOOK_MS / 1000} s
        when something arrives. <output className="waiting">Waiting for data</output>
      </p>
      <div className="choices" role="group" aria-label="Language">
        {all.map((one) => (
          <button
            key={one.language}
            type="button"
            className="button"
            aria-pressed={one.language === language}
            onClick={() => setLanguage(one.language)}
          >
            {one.language}
          </button>
        ))}
      </div>
      {recipe && (
        <div className="recipe">
          <p className="muted">{recipe.note}</p>
          {recipe.steps.map((step) => (
            <section key={step.title}>
              <h2>{step.title}</h2>
              <Copyable code={step.code} label={step.title} />
            </section>
          ))}
        </div>
      )}
      <section>
        <h2>A profile that you already have: pprof, JFR, collapsed stacks, perf script, speedscope</h2>
        <p className="muted">
          Stored by the command below; or <Link to="/view">look at a file</Link> without storing it.
        </p>
        <Copyable
          label="Upload a profile"
          code={`curl --data-binary @cpu.pprof '${window.location.origin}/api/v1/ingest?service=my-service'`}
        />
      </section>
    </section>
  );
}
