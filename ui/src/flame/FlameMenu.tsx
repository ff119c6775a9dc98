/** What can be done with one frame: the menu of a right click. */

import { useEffect, useRef } from "react";

import { plain } from "./paint";

export interface MenuPlace {
  /** The frame's function. */
  name: string;
  /** Of the page, in pixels. */
  x: number;
  y: number;
  onZoom: () => void;
  onSandwich: () => void;
  onHide: () => void;
}

const SHOWN_MAX = 48;

export function FlameMenu({ place, onClose }: { place: MenuPlace; onClose: () => void }) {
  const menu = useRef<HTMLDivElement>(null);
  useEffect(() => {
    menu.current?.querySelector("button")?.focus();
    const away = (event: PointerEvent): void => {
      if (!menu.current?.contains(event.target as Node)) onClose();
    };
    window.addEventListener("pointerdown", away);
    return () => window.removeEventListener("pointerdown", away);
  }, [onClose]);

  const items = [
    { text: "Zoom", run: place.onZoom },
    { text: "Callers and callees", run: place.onSandwich },
    { text: "Hide this function", run: place.onHide },
    { text: "Copy name", run: () => void navigator.clipboard?.writeText(place.name).catch(() => undefined) },
  ];
  return (
    <div
      ref={menu}
      className="floating flame-menu menu-items"
      role="menu"
      tabIndex={-1}
      aria-label={`Frame ${plain(place.name.slice(0, SHOWN_MAX))}`}
      style={{ left: Math.min(place.x, window.innerWidth - 220), top: Math.min(place.y, window.innerHeight - 170) }}
      onKeyDown={(event) => {
        const buttons = [...(menu.current?.querySelectorAll("button") ?? [])];
        const at = buttons.indexOf(document.activeElement as HTMLButtonElement);
        if (event.key === "Escape") onClose();
        else if (event.key === "ArrowDown") buttons[(at + 1) % buttons.length]?.focus();
        else if (event.key === "ArrowUp") buttons[(at + buttons.length - 1) % buttons.length]?.focus();
        else return;
        event.preventDefault();
        event.stopPropagation();
      }}
    >
      <div className="mono muted cut">
        <bdi>{plain(place.name.slice(0, SHOWN_MAX)) || "(no name)"}</bdi>
      </div>
      {items.map(({ text, run }) => (
        <button
          key={text}
          type="button"
          role="menuitem"
          onClick={() => {
            run();
            onClose();
          }}
        >
          {text}
        </button>
      ))}
    </div>
  );
}
