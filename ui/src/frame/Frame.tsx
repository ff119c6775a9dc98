/** What is around every screen: name, search, time, theme, keys, and the way to the other screens. */

import { Link, Outlet, useRouterState } from "@tanstack/react-router";
import { useRef, useState } from "react";

import { type SpansSearch, spansSearch } from "../spans/search";
import { type FrameSearch, frameSearch, searchText } from "../url/text";
import { CopyLink } from "../parts/Copyable";
import { DropAnywhere } from "../view/DropAnywhere";
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
  const { range, spans } = useWays();
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
        <CopyLink />
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
            search={screen.to === "/spans" ? spans : range}
            activeOptions={{ exact: screen.to === "/", includeSearch: false }}
          >
            {screen.label}
          </Link>
        ))}
      </nav>
      <main id="screen" className="frame-screen" tabIndex={-1}>
        <Outlet />
      </main>
      <DropAnywhere />
      {isHelpOpen && <KeyHelp onClose={() => setHelpOpen(false)} />}
    </ClockProvider>
  );
}

/**
 * What the way to the other screens keeps. The range is shared by all of them; a trace uses `start` and `end` of its address for
 * something else, so there it is the range of the screen before. From a trace, Spans is the list that one came from.
 */
function useWays(): { range: FrameSearch; spans: SpansSearch } {
  const location = useRouterState({ select: (state) => state.location });
  const [kept, keep] = useState<{ range: FrameSearch; spans: SpansSearch }>({ range: {}, spans: {} });
  if (location.pathname.startsWith("/trace/")) return kept;
  const range = frameSearch(location.search);
  const spans = location.pathname === "/spans" ? spansSearch(location.search) : range;
  if (searchText({ ...spans }) !== searchText({ ...kept.spans })) keep({ range, spans });
  return { range, spans: range };
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
