/** What is around every screen: name, search, time, theme, keys, and the way to the other screens. */

import { Link, Outlet, useRouterState } from "@tanstack/react-router";
import { useRef, useState } from "react";

import { type FrameSearch, frameSearch } from "../url/text";
import { useThemeChoice } from "../theme/theme";
import { rangeText } from "../time/range";
import { ClockProvider } from "../time/clock";
import { KeyHelp, useKeyboard, useKeys } from "./keys";
import { RangePicker } from "./RangePicker";
import { SearchBox } from "./SearchBox";
import "./frame.css";

const SCREENS = [
  { to: "/", label: "Home" },
  { to: "/spans", label: "Spans" },
  { to: "/compare", label: "Compare" },
  { to: "/profiles", label: "Profiles" },
] as const;

export function Frame() {
  useKeyboard();
  const [isHelpOpen, setHelpOpen] = useState(false);
  const search = useRef<HTMLInputElement>(null);
  useKeys("Everywhere", [
    { press: "/", does: "search", run: () => search.current?.focus() },
    { press: "?", does: "this list", run: () => setHelpOpen(true) },
  ]);
  const range = useFrameRange();
  return (
    <ClockProvider text={rangeText(range)} live={range.live === "on"}>
      <a className="skip" href="#screen">
        Skip to the content
      </a>
      <header className="frame-head">
        <Link to="/" search={range} className="frame-name">
          <img src="/icon.svg" alt="" width={18} height={18} />
          Spanflame
        </Link>
        <SearchBox field={search} />
        <RangePicker />
        <ThemeSwitch />
        <button type="button" className="button" aria-label="Keys" title="Keys ( ? )" onClick={() => setHelpOpen(true)}>
          ?
        </button>
      </header>
      <nav className="frame-nav" aria-label="Screens">
        {SCREENS.map((screen) => (
          <Link
            key={screen.to}
            to={screen.to}
            search={range}
            activeOptions={{ exact: screen.to === "/", includeSearch: false }}
          >
            {screen.label}
          </Link>
        ))}
      </nav>
      <main id="screen" className="frame-screen" tabIndex={-1}>
        <Outlet />
      </main>
      {isHelpOpen && <KeyHelp onClose={() => setHelpOpen(false)} />}
    </ClockProvider>
  );
}

/**
 * The range that the screens share. A trace and a comparison use `start` and `end` of their address for something else or not
 * at all; there the range is the one of the screen before, so that the way back leads to the same spans.
 */
function useFrameRange(): FrameSearch {
  const location = useRouterState({ select: (state) => state.location });
  const [kept, keep] = useState<FrameSearch>({});
  const said = location.pathname.startsWith("/trace/") ? kept : frameSearch(location.search);
  if (said.start !== kept.start || said.end !== kept.end || said.live !== kept.live) keep(said);
  return said;
}

const THEMES = {
  system: { sign: "◐", next: "light", name: "the system's" },
  light: { sign: "☀", next: "dark", name: "light" },
  dark: { sign: "☾", next: "system", name: "dark" },
} as const;

function ThemeSwitch() {
  const [choice, choose] = useThemeChoice();
  const theme = THEMES[choice];
  return (
    <button
      type="button"
      className="button"
      aria-label={`Theme: ${theme.name}`}
      title={`Theme: ${theme.name}; next: ${THEMES[theme.next].name}`}
      onClick={() => choose(theme.next)}
    >
      {theme.sign}
    </button>
  );
}
