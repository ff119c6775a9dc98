/**
 * Everything a flame graph can be saved as. Profile formats come from the server, which has all samples, or where it keeps none
 * from the tree; pictures from what is on screen.
 */

import { useRef } from "react";

import { useKeys } from "../frame/keys";
import { useTheme } from "../theme/theme";
import type { Layout } from "./layout";
import { collapsedText, speedscopeText } from "./formats";
import { png, save, svg } from "./picture";
import type { FlameTree } from "./tree";

const FORMATS = [
  { format: "pprof", name: "pprof", file: "profile.pb.gz" },
  { format: "collapsed", name: "collapsed stacks", file: "profile.collapsed.txt" },
  { format: "speedscope", name: "speedscope", file: "profile.speedscope.json" },
] as const;

export function ExportMenu({
  tree,
  layout,
  isFlame,
  unit,
  addressOf,
}: {
  tree: FlameTree;
  layout: Layout;
  isFlame: boolean;
  unit: string;
  /** Where the server answers the same question in another format; absent where it cannot. */
  addressOf: ((format: "pprof" | "collapsed" | "speedscope") => string) | undefined;
}) {
  const theme = useTheme();
  const menu = useRef<HTMLDetailsElement>(null);
  const close = (): void => {
    if (menu.current) menu.current.open = false;
  };
  useKeys("Export", [{ press: "Escape", run: () => (menu.current?.open ? close() : false) }]);
  return (
    <details ref={menu} className="menu">
      <summary className="button small">Export</summary>
      <div className="floating menu-items">
        {addressOf &&
          FORMATS.map(({ format, name, file }) => (
            <a key={format} href={addressOf(format)} download={file} onClick={close}>
              {name}
            </a>
          ))}
        {!addressOf && tree.sides.length === 1 && (
          <>
            <button
              type="button"
              onClick={() => {
                save(collapsedText(tree), "profile.collapsed.txt", "text/plain");
                close();
              }}
            >
              collapsed stacks
            </button>
            <button
              type="button"
              onClick={() => {
                save(speedscopeText(tree, unit, "profile"), "profile.speedscope.json", "application/json");
                close();
              }}
            >
              speedscope
            </button>
          </>
        )}
        <button
          type="button"
          onClick={() => {
            save(svg(tree, layout, isFlame, unit, theme), "profile.svg", "image/svg+xml");
            close();
          }}
        >
          SVG
        </button>
        <button
          type="button"
          onClick={() => {
            void png(tree, layout, isFlame, theme).then((picture) => save(picture, "profile.png", "image/png"));
            close();
          }}
        >
          PNG
        </button>
      </div>
    </details>
  );
}
