/** Files dropped onto any screen are looked at. */

import { useNavigate } from "@tanstack/react-router";
import { useEffect, useState } from "react";

import { openFile } from "./file";
import "./drop.css";

export function DropAnywhere() {
  const navigate = useNavigate();
  const [isOver, setOver] = useState(false);
  useEffect(() => {
    const hasFile = (event: DragEvent): boolean => event.dataTransfer?.types.includes("Files") ?? false;
    const over = (event: DragEvent): void => {
      if (!hasFile(event)) return;
      event.preventDefault();
      setOver(true);
    };
    const leave = (event: DragEvent): void => {
      if (event.relatedTarget === null) setOver(false);
    };
    const drop = (event: DragEvent): void => {
      setOver(false);
      const file = event.dataTransfer?.files[0];
      if (!file) return;
      event.preventDefault();
      openFile(file);
      void navigate({ to: "/view", search: {} });
    };
    window.addEventListener("dragover", over);
    window.addEventListener("dragleave", leave);
    window.addEventListener("drop", drop);
    return () => {
      window.removeEventListener("dragover", over);
      window.removeEventListener("dragleave", leave);
      window.removeEventListener("drop", drop);
    };
  }, [navigate]);
  if (!isOver) return null;
  return (
    <div className="drop-anywhere" aria-hidden="true">
      <p>Drop to look at the file. Nothing is stored.</p>
    </div>
  );
}
