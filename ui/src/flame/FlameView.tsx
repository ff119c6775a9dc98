/**
 * The flame graph, everywhere the same: of a span, a trace, a selection, a service, a file, or of two of them compared.
 *
 *   <FlameView profile={answer} requests={spans} focus={search.focus} onFocus={...} addressOf={...} />
 *
 * How it is looked at (zoom, search, order, hidden frames, table, sandwich) is one text in the address: `focus`. See
 * `state.ts`. Values are never computed anew: a frame's figures are sums of the answer's.
 */

import "./flame.css";

import { useCallback, useMemo, useState } from "react";

import type { Comparison, Profile } from "../api/answers";
import { count, counted, value } from "../text/quantity";
import { sampledShare } from "../text/share";
import { ExportMenu } from "./ExportMenu";
import { FlameCanvas } from "./FlameCanvas";
import { FlameMenu, type MenuPlace } from "./FlameMenu";
import { FunctionTable } from "./FunctionTable";
import { type Measure, lines } from "./figures";
import { layout } from "./layout";
import { PRESETS, isOfPreset, matcher, shortName } from "./names";
import { plain } from "./paint";
import { type FlameState, type Mode, nodeOfPath, parseState, pathKey, stateText } from "./state";
import {
  type FlameTree,
  callees,
  callers,
  comparedTreeOf,
  functionCosts,
  functionsOf,
  outermost,
  pathTo,
  simplified,
  treeOf,
} from "./tree";

type ProfileShown = Pick<Profile, "type" | "unit" | "total" | "samples" | "frames" | "tree" | "evidence">;
type ComparisonShown = Pick<Comparison, "type" | "unit" | "frames" | "tree" | "base" | "target">;

export interface FlameViewProps {
  /** An answer with frames and a tree, or a comparison. */
  profile: ProfileShown | ComparisonShown;
  /** Number of requests (spans) behind the profile; adds "per request" to figures. */
  requests?: number | undefined;
  /** How it is looked at, as it stands in the address, and how to change that. */
  focus?: string | undefined;
  onFocus?: ((focus: string | undefined) => void) | undefined;
  /** Where the server answers the same question in another format. */
  addressOf?: ((format: "pprof" | "collapsed" | "speedscope") => string) | undefined;
}

const MODES: readonly { mode: Mode; name: string; title: string }[] = [
  { mode: "graph", name: "Flame graph", title: "Who called whom" },
  { mode: "both", name: "Both", title: "Flame graph and table" },
  { mode: "table", name: "Table", title: "Functions by cost" },
  { mode: "sandwich", name: "Sandwich", title: "Callers and callees of one function" },
];

export function FlameView({ profile, requests, focus, onFocus, addressOf }: FlameViewProps) {
  const [own, setOwn] = useState<string | undefined>(undefined);
  const text = onFocus ? focus : own;
  const state = useMemo(() => parseState(text), [text]);
  const change = useCallback(
    (part: Partial<FlameState>) => (onFocus ?? setOwn)(stateText({ ...state, ...part })),
    [state, onFocus],
  );
  const whole = useMemo(() => wholeOf(profile), [profile]);
  const { presets, hidden, collapseRecursion } = state;
  const tree = useMemo(() => {
    const left = PRESETS.filter((preset) => presets.includes(preset.id));
    const names = new Set(hidden);
    const isHidden = (frame: FlameTree["frames"][number]): boolean =>
      names.has(frame.function) || left.some((preset) => isOfPreset(preset, frame));
    return simplified(whole, { isHidden, collapseRecursion });
  }, [whole, presets, hidden, collapseRecursion]);
  const matches = useMemo(() => matcher(state.search), [state.search]);
  const found = useMemo(
    () => matches && Uint8Array.from(tree.frames, (frame) => (matches(frame.function) ? 1 : 0)),
    [tree, matches],
  );
  const measure: Measure = useMemo(
    () => ({
      unit: profile.unit,
      requests: isComparison(profile) ? [profile.base.spans, profile.target.spans] : [requests],
    }),
    [profile, requests],
  );
  const showsGraph = state.mode === "graph" || state.mode === "both";
  const isFound = found && ((frame: number) => found[frame] === 1);
  const shown = { tree, measure, found, state, change };
  return (
    <section className="flame" aria-label="Profile">
      <Toolbar {...shown} addressOf={addressOf} />
      <div className={state.mode === "both" ? "flame-both" : undefined}>
        {showsGraph && <Graph {...shown} />}
        {state.mode === "sandwich" && <Sandwich {...shown} />}
        {(state.mode === "table" || state.mode === "both") && (
          <FunctionTable
            tree={tree}
            measure={measure}
            isFound={isFound}
            onFunction={(frame) => change({ mode: "sandwich", function: tree.frames[frame].function })}
          />
        )}
      </div>
    </section>
  );
}

function isComparison(profile: ProfileShown | ComparisonShown): profile is ComparisonShown {
  return "base" in profile;
}

function wholeOf(profile: ProfileShown | ComparisonShown): FlameTree {
  return isComparison(profile) ? comparedTreeOf(profile) : treeOf(profile);
}

interface Shown {
  tree: FlameTree;
  measure: Measure;
  found: Uint8Array | undefined;
  state: FlameState;
  change: (part: Partial<FlameState>) => void;
}

function Toolbar({
  tree,
  measure,
  found,
  state,
  change,
  addressOf,
}: Shown & { addressOf: FlameViewProps["addressOf"] }) {
  const placed = useMemo(() => layout(tree, state.order), [tree, state.order]);
  const offered = useMemo(
    () =>
      PRESETS.filter(
        (preset) => state.presets.includes(preset.id) || tree.frames.some((frame) => isOfPreset(preset, frame)),
      ),
    [tree, state.presets],
  );
  const toggle = (id: string): void =>
    change({
      presets: state.presets.includes(id) ? state.presets.filter((one) => one !== id) : [...state.presets, id],
    });
  return (
    <div className="flame-toolbar">
      <span className="choices" role="group" aria-label="View">
        {MODES.map(({ mode, name, title }) => (
          <button
            key={mode}
            type="button"
            className="button small"
            title={title}
            aria-pressed={state.mode === mode}
            onClick={() => change({ mode })}
          >
            {name}
          </button>
        ))}
      </span>
      <input
        className="field small flame-search"
        type="search"
        aria-label="Search functions"
        placeholder="Search functions, or /regex/"
        value={state.search}
        onChange={(event) => change({ search: event.target.value })}
      />
      <MatchTotal tree={tree} found={found} measure={measure} />
      {offered.length > 0 && (
        <button
          type="button"
          className="button small"
          title={`Leave out ${offered.map((preset) => preset.name).join(", ")}; what they cost stays with their callers`}
          aria-pressed={offered.every((preset) => state.presets.includes(preset.id))}
          onClick={() =>
            change({
              presets: offered.every((preset) => state.presets.includes(preset.id))
                ? []
                : offered.map((preset) => preset.id),
            })
          }
        >
          Hide runtime
        </button>
      )}
      <span className="flame-menus">
        <details className="menu">
          <summary className="button small">Show</summary>
          <div className="floating menu-items" role="group" aria-label="What is shown">
            <Check
              isOn={state.order === "value"}
              text="Widest first"
              title="Else by name, stable over graphs"
              onToggle={() => change({ order: state.order === "value" ? "name" : "value" })}
            />
            <Check
              isOn={state.isFlame}
              text="Root at the bottom"
              onToggle={() => change({ isFlame: !state.isFlame })}
            />
            <Check
              isOn={state.collapseRecursion}
              text="Collapse recursion"
              onToggle={() => change({ collapseRecursion: !state.collapseRecursion })}
            />
            {offered.map((preset) => (
              <Check
                key={preset.id}
                isOn={state.presets.includes(preset.id)}
                text={`Hide ${preset.name}`}
                onToggle={() => toggle(preset.id)}
              />
            ))}
            {state.hidden.map((name) => (
              <Check
                key={name}
                isOn
                text={`Hide ${plain(shortName(name, 36))}`}
                onToggle={() => change({ hidden: state.hidden.filter((one) => one !== name) })}
              />
            ))}
          </div>
        </details>
        <ExportMenu tree={tree} layout={placed} isFlame={state.isFlame} unit={measure.unit} addressOf={addressOf} />
      </span>
    </div>
  );
}

function Check({ isOn, text, title, onToggle }: { isOn: boolean; text: string; title?: string; onToggle: () => void }) {
  return (
    <label title={title}>
      <input type="checkbox" checked={isOn} onChange={onToggle} /> {text}
    </label>
  );
}

/** What all found frames cost together; what is called by another found frame counts once. */
function MatchTotal({ tree, found, measure }: { tree: FlameTree; found: Uint8Array | undefined; measure: Measure }) {
  const sums = useMemo(() => {
    if (!found) return undefined;
    const nodes = outermost(tree, (node) => node !== 0 && found[tree.frame[node]] === 1);
    return tree.sides.map(({ total, samples }) => ({
      total: nodes.reduce((sum, node) => sum + total[node], 0),
      samples: nodes.reduce((sum, node) => sum + samples[node], 0),
    }));
  }, [tree, found]);
  if (!sums) return null;
  const text = sums.map((sum, at) => {
    const whole = tree.sides[at];
    const share = sampledShare(sum.total, whole.total[0], whole.samples[0]);
    return [value(sum.total, measure.unit), share, counted(sum.samples, "sample")].filter(Boolean).join(" · ");
  });
  return <output className="mono flame-matched">{text.join("  /  ")}</output>;
}

function Graph({ tree, measure, found, state, change }: Shown) {
  const placed = useMemo(() => layout(tree, state.order), [tree, state.order]);
  const zoom = useMemo(() => nodeOfPath(tree, state.zoom), [tree, state.zoom]);
  const [menu, setMenu] = useState<MenuPlace | null>(null);
  const onZoom = (node: number): void => change({ zoom: node === 0 ? undefined : pathKey(tree, node) });
  const close = useCallback(() => setMenu(null), []);
  return (
    <div className="flame-graph">
      {zoom !== 0 && <Breadcrumb tree={tree} zoom={zoom} onZoom={onZoom} />}
      <FlameCanvas
        tree={tree}
        layout={placed}
        measure={measure}
        zoom={zoom}
        onZoom={onZoom}
        found={found}
        isFlame={state.isFlame}
        onMenu={({ node, x, y }) => setMenu(menuOf({ tree, state, change }, node, { x, y }, () => onZoom(node)))}
      />
      {menu && <FlameMenu place={menu} onClose={close} />}
    </div>
  );
}

function menuOf(
  { tree, state, change }: Pick<Shown, "tree" | "state" | "change">,
  node: number,
  at: { x: number; y: number },
  onZoom: () => void,
): MenuPlace {
  const name = tree.frames[tree.frame[node]].function;
  return {
    name,
    ...at,
    onZoom,
    onSandwich: () => change({ mode: "sandwich", function: name }),
    onHide: () => change({ hidden: [...state.hidden, name], zoom: undefined }),
  };
}

/** More frames of the way than this are told by their number. */
const CRUMBS_MAX = 5;

function Breadcrumb({ tree, zoom, onZoom }: { tree: FlameTree; zoom: number; onZoom: (node: number) => void }) {
  const path = pathTo(tree, zoom);
  const shown = path.slice(-CRUMBS_MAX);
  return (
    <nav className="flame-crumbs mono" aria-label="Zoomed to">
      <button type="button" className="button small" title="Whole profile ( Esc )" onClick={() => onZoom(0)}>
        all
      </button>
      {path.length > shown.length && <span className="muted">{count(path.length - shown.length)} frames</span>}
      {shown.map((node) => (
        <button
          key={node}
          type="button"
          className="button small plain"
          title="Double click: whole profile"
          onClick={() => onZoom(node)}
          onDoubleClick={() => onZoom(0)}
        >
          <bdi>{plain(shortName(tree.frames[tree.frame[node]].function || "(no name)", 40))}</bdi>
        </button>
      ))}
    </nav>
  );
}

/** Callers above, callees below one function. */
function Sandwich({ tree, measure, found, state, change }: Shown) {
  const frame = useMemo(
    () => tree.frames.findIndex((one, at) => at !== tree.frame[0] && one.function === state.function),
    [tree, state.function],
  );
  const costs = useMemo(
    () => functionCosts(tree).find((one) => one.frame === functionsOf(tree.frames)[frame])?.sides ?? [],
    [tree, frame],
  );
  if (state.function === undefined || frame < 0) {
    return (
      <>
        <p className="muted flame-hint">
          {state.function === undefined
            ? "Choose a function to see its callers and callees."
            : `${plain(state.function.slice(0, 200))} is not in this profile. Choose another function.`}
        </p>
        <FunctionTable
          tree={tree}
          measure={measure}
          isFound={found && ((one) => found[one] === 1)}
          onFunction={(one) => change({ function: tree.frames[one].function })}
        />
      </>
    );
  }
  return (
    <div className="flame-sandwich">
      <h3 className="mono cut">
        <bdi>{plain(state.function.slice(0, 300))}</bdi>{" "}
        <button type="button" className="button small" onClick={() => change({ function: undefined })}>
          Another function
        </button>
      </h3>
      <p className="mono flame-cost">{lines(tree, costs, measure).join("  ·  ")}</p>
      <Part
        title="Callers"
        tree={callers(tree, frame)}
        measure={measure}
        found={found}
        isFlame
        state={state}
        change={change}
      />
      <Part
        title="Callees"
        tree={callees(tree, frame)}
        measure={measure}
        found={found}
        isFlame={false}
        state={state}
        change={change}
      />
    </div>
  );
}

function Part({
  title,
  tree: given,
  measure,
  found,
  isFlame,
  state,
  change,
}: Shown & { title: string; isFlame: boolean }) {
  // A new tree is made at every rendering of the sandwich; the picture changes only with its content.
  const key = `${given.frame.length} ${given.frame[0]} ${given.sides.map((side) => side.total[0]).join()} ${given.frames.length}`;
  // oxlint-disable-next-line react-hooks/exhaustive-deps
  const tree = useMemo(() => given, [key, given.frames]);
  const placed = useMemo(() => layout(tree, state.order), [tree, state.order]);
  const [zoom, setZoom] = useState(0);
  const [menu, setMenu] = useState<MenuPlace | null>(null);
  const close = useCallback(() => setMenu(null), []);
  const at = zoom < tree.frame.length ? zoom : 0;
  return (
    <div className="flame-part">
      <h4 className="muted">{title}</h4>
      <FlameCanvas
        tree={tree}
        layout={placed}
        measure={measure}
        zoom={at}
        onZoom={setZoom}
        found={found}
        isFlame={isFlame}
        onMenu={({ node, x, y }) => setMenu(menuOf({ tree, state, change }, node, { x, y }, () => setZoom(node)))}
      />
      {menu && <FlameMenu place={menu} onClose={close} />}
    </div>
  );
}
