/** The graph itself: a canvas as high as what is on screen, moved over the whole by scrolling. */

import {
  type KeyboardEvent,
  type PointerEvent,
  type ReactNode,
  useEffect,
  useId,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from "react";

import { useWidth } from "../parts/useWidth";
import { useTheme } from "../theme/theme";
import { useKeys } from "../frame/keys";
import { counted } from "../text/quantity";
import {
  type Measure,
  costsOf,
  costsOfAll,
  lines,
  shareDifference,
  isSignificant,
  nameOf,
  points,
  spoken,
} from "./figures";
import { type Layout, WHOLE, nodeAt, smallAt, viewOf } from "./layout";
import { ROW, levelAt, paint, packagesOf, plain, rowCount, topOf } from "./paint";
import { type FlameTree, childLists, pathTo } from "./tree";

/** Rows on screen before it scrolls. */
const ROWS_SHOWN_MAX = 30;
/** Longer names are cut in the tooltip. */
const NAME_SHOWN_MAX = 600;

export interface FlameCanvasProps {
  tree: FlameTree;
  layout: Layout;
  measure: Measure;
  /** Node that takes the whole width; 0 is the root. */
  zoom: number;
  onZoom: (node: number) => void;
  /** By frame index: what a search found. */
  found: Uint8Array | undefined;
  isFlame: boolean;
  /** Asked for by right click or the menu key. */
  onMenu: (menu: { node: number; x: number; y: number }) => void;
}

interface Pointed {
  node: number;
  /** Where frames are too narrow to be drawn: those of the strip. */
  small: Uint32Array | null;
  x: number;
  y: number;
}

export function FlameCanvas({ tree, layout, measure, zoom, onZoom, found, isFlame, onMenu }: FlameCanvasProps) {
  const place = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useWidth(place);
  const theme = useTheme();
  const [scroll, setScroll] = useState(0);
  // Nodes are numbers of one tree: those of another mean nothing here.
  const [pointing, setPointing] = useState<(Pointed & { tree: FlameTree }) | null>(null);
  const [moved, setMoved] = useState<{ node: number; tree: FlameTree } | null>(null);
  const pointed = pointing?.tree === tree ? pointing : null;
  const cursor = moved?.tree === tree ? moved.node : undefined;
  const setPointed = (to: Pointed | null): void => setPointing(to && { ...to, tree });
  const setCursor = (node: number | undefined): void => setMoved(node === undefined ? null : { node, tree });
  const help = useId();
  const lists = useMemo(() => childLists(tree), [tree]);

  const hovered = pointed?.node;
  const rows = rowCount(layout);
  const height = Math.min(rows, ROWS_SHOWN_MAX) * ROW;
  const above = useMemo(() => [0, ...pathTo(tree, zoom)], [tree, zoom]);
  const view = useMemo(() => (zoom === 0 ? WHOLE : viewOf(layout, zoom)), [layout, zoom]);

  useKeys("Flame graph, while it has the focus", [
    { press: "ArrowDown", does: "move to callee, caller, or neighbours with the other arrows", run: () => false },
    { press: "Enter", does: "zoom to the frame", run: () => false },
    { press: "Backspace", does: "zoom out to the caller", run: () => false },
  ]);

  // The root is in sight at first, also where it is at the bottom.
  useLayoutEffect(() => {
    if (place.current) place.current.scrollTop = isFlame ? rows * ROW : 0;
  }, [isFlame, rows]);

  useEffect(() => {
    if (!canvas.current || width <= 0) return undefined;
    const target = canvas.current;
    // One picture a frame, however many events there are.
    const request = requestAnimationFrame(() =>
      paint(target, {
        tree,
        layout,
        view,
        above,
        found,
        hovered,
        cursor,
        isFlame,
        width,
        height,
        scroll,
        theme,
      }),
    );
    return () => cancelAnimationFrame(request);
  }, [tree, layout, view, above, found, hovered, cursor, isFlame, width, height, scroll, theme]);

  function at(event: { clientX: number; clientY: number }): Pointed | null {
    const box = canvas.current?.getBoundingClientRect();
    if (!box) return null;
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const level = levelAt(y + scroll, rows, isFlame);
    const node = level < above.length - 1 ? above[level] : nodeAt(layout, level, view.start + (x / width) * view.width);
    if (node === undefined) return null;
    const small = layout.width[node] * width < view.width ? smallAt(layout, level, view, width, x) : null;
    return { node, small, x, y };
  }

  function show(node: number): void {
    const top = topOf(layout.level[node], rows, isFlame);
    const box = place.current;
    if (!box) return;
    if (top < box.scrollTop) box.scrollTop = top;
    else if (top + ROW > box.scrollTop + height) box.scrollTop = top + ROW - height;
  }

  function move(to: number | undefined): void {
    if (to === undefined) return;
    setCursor(to);
    show(to);
  }

  function beside(node: number, step: number): number | undefined {
    const level = layout.levels[layout.level[node]];
    const next = level[level.indexOf(node) + step];
    const isInView =
      next !== undefined &&
      layout.start[next] < view.start + view.width &&
      layout.start[next] + layout.width[next] > view.start;
    return isInView ? next : undefined;
  }

  function widestChild(node: number): number | undefined {
    let best: number | undefined;
    for (let child = lists.first[node]; child !== 0; child = lists.next[child])
      if (best === undefined || tree.weight[child] > tree.weight[best]) best = child;
    return best;
  }

  function onKeyDown(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const from = cursor ?? zoom;
    const [down, up] = isFlame ? ["ArrowUp", "ArrowDown"] : ["ArrowDown", "ArrowUp"];
    if (event.key === down) move(cursor === undefined ? from : widestChild(from));
    else if (event.key === up) move(from === 0 ? 0 : tree.parent[from]);
    else if (event.key === "ArrowLeft") move(beside(from, -1));
    else if (event.key === "ArrowRight") move(beside(from, 1));
    else if (event.key === "Home") move(zoom);
    else if (event.key === "Enter") onZoom(from);
    else if (event.key === "Backspace") onZoom(tree.parent[zoom]);
    else if (event.key === "Escape" && (zoom !== 0 || cursor !== undefined)) {
      setCursor(undefined);
      onZoom(0);
    } else if (event.key === "ContextMenu" || (event.shiftKey && event.key === "F10")) {
      const box = canvas.current?.getBoundingClientRect();
      onMenu({ node: from, x: (box?.left ?? 0) + 20, y: (box?.top ?? 0) + 20 });
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  let calls = 0;
  if (cursor !== undefined) for (let child = lists.first[cursor]; child !== 0; child = lists.next[child]) calls += 1;
  return (
    <div className="flame-canvas">
      <div
        ref={place}
        className="flame-scroll"
        style={{ height }}
        onScroll={(event) => {
          setScroll(event.currentTarget.scrollTop);
          setPointed(null);
        }}
      >
        <div style={{ height: rows * ROW }}>
          <canvas
            ref={canvas}
            style={{ width, height, top: 0 }}
            role="application"
            tabIndex={0}
            aria-label="Flame graph"
            aria-describedby={help}
            onPointerMove={(event: PointerEvent) => setPointed(at(event))}
            onPointerLeave={() => setPointed(null)}
            onClick={(event) => {
              const hit = at(event);
              if (hit) onZoom(hit.node);
            }}
            onContextMenu={(event) => {
              const hit = at(event);
              if (!hit) return;
              event.preventDefault();
              setPointed(null);
              onMenu({ node: hit.node, x: event.clientX, y: event.clientY });
            }}
            onKeyDown={onKeyDown}
          />
        </div>
      </div>
      <p id={help} className="visually-hidden">
        Arrow keys move between frames, Enter zooms, Backspace zooms out, Escape resets. The table view lists the same
        functions.
      </p>
      <output className="visually-hidden">{cursor === undefined ? "" : spoken(tree, cursor, calls, measure)}</output>
      {pointed && <Tooltip tree={tree} pointed={pointed} measure={measure} width={width} />}
    </div>
  );
}

function Tooltip({
  tree,
  pointed,
  measure,
  width,
}: {
  tree: FlameTree;
  pointed: Pointed;
  measure: Measure;
  width: number;
}) {
  const { node, small, x, y } = pointed;
  const frame = tree.frames[tree.frame[node]];
  const source = frame.file ? `${frame.file}${frame.line ? `:${frame.line}` : ""}` : undefined;
  const name = nameOf(tree, node);
  const group = packagesOf(tree)[tree.frame[node]];
  if (small && small.length > 1)
    return (
      <Tip x={x} y={y} width={width}>
        <div className="mono">{counted(small.length, "small frame")}, each narrower than a pixel</div>
        {lines(tree, costsOfAll(tree, small), measure).map((line) => (
          <div key={line} className="mono">
            {line}
          </div>
        ))}
      </Tip>
    );
  return (
    <Tip x={x} y={y} width={width}>
      <div className="mono flame-tip-name">
        <bdi>{plain(name.length > NAME_SHOWN_MAX ? `${name.slice(0, NAME_SHOWN_MAX)}...` : name)}</bdi>
      </div>
      {source && (
        <div className="mono muted flame-tip-name">
          <bdi>{plain(source.slice(-NAME_SHOWN_MAX))}</bdi>
        </div>
      )}
      {node !== 0 && group && !source && <div className="muted">{plain(group.slice(0, 120))}</div>}
      {lines(tree, costsOf(tree, node), measure).map((line) => (
        <div key={line} className="mono">
          {line}
        </div>
      ))}
      {tree.sides.length > 1 && (
        <div className="mono">
          share {points(shareDifference(tree, node))}
          {isSignificant(tree, node) ? "" : ", not significant"}
        </div>
      )}
      {frame.unresolved && <div className="muted">No symbols for this address yet.</div>}
    </Tip>
  );
}

function Tip({ x, y, width, children }: { x: number; y: number; width: number; children: ReactNode }) {
  return (
    <div
      className="floating tip flame-tip"
      aria-hidden="true"
      style={{ left: Math.max(0, Math.min(x + 12, width - 380)), top: y + 18 }}
    >
      {children}
    </div>
  );
}
