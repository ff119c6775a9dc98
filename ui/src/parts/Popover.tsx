import { type ReactNode, createContext, use, useCallback, useEffect, useRef, useState } from "react";

import { useKeys } from "../frame/keys";
import "./popover.css";

const CloseContext = createContext<() => void>(() => undefined);

/** For what is in a popover: closes it. */
export function useClosePopover(): () => void {
  return use(CloseContext);
}

/** A button that opens something floating under itself. Esc and a click elsewhere close it. */
export function Popover({
  button,
  label,
  title,
  className = "",
  align = "left",
  children,
}: {
  /** What the button shows. */
  button: ReactNode;
  /** Name of what opens. */
  label: string;
  title?: string;
  className?: string;
  align?: "left" | "right";
  children: ReactNode;
}) {
  const [isOpen, setOpen] = useState(false);
  const root = useRef<HTMLDivElement>(null);
  const opener = useRef<HTMLButtonElement>(null);

  const close = useCallback(() => {
    setOpen(false);
    // What had the focus is gone; without this it would be lost to the top of the page.
    if (root.current?.contains(document.activeElement)) opener.current?.focus();
  }, []);

  useEffect(() => {
    if (!isOpen) return undefined;
    const closeOutside = (event: PointerEvent): void => {
      if (event.target instanceof Node && !root.current?.contains(event.target)) setOpen(false);
    };
    window.addEventListener("pointerdown", closeOutside);
    return () => window.removeEventListener("pointerdown", closeOutside);
  }, [isOpen]);

  return (
    <div className="popover" ref={root}>
      <button
        ref={opener}
        type="button"
        className="button"
        aria-expanded={isOpen}
        aria-haspopup="dialog"
        title={title}
        onClick={() => setOpen(!isOpen)}
      >
        {button}
      </button>
      {isOpen && (
        <div className={`floating ${align} ${className}`} role="dialog" aria-label={label}>
          <CloseContext value={close}>
            <CloseOnEscape />
            {children}
          </CloseContext>
        </div>
      )}
    </div>
  );
}

/** A component of its own, so that the key is registered only while the popover is open. */
function CloseOnEscape() {
  useKeys("Everywhere", [{ press: "Escape", run: useClosePopover() }]);
  return null;
}
