/** The flame graph. This first one lists the hottest functions. */

import type { Profile } from "../api/answers";
import { value } from "../text/quantity";
import { sampledShare } from "../text/share";

export interface FlameViewProps {
  /** Any answer with frames and a tree. */
  profile: Pick<Profile, "type" | "unit" | "total" | "samples" | "frames" | "tree" | "evidence">;
  /** Number of requests (spans) behind the profile; adds "per request" to figures. */
  requests?: number | undefined;
  /** What it is zoomed to, as it stands in the URL, and how to change that. */
  focus?: string | undefined;
  onFocus?: ((focus: string | undefined) => void) | undefined;
}

export function FlameView({ profile }: FlameViewProps) {
  const { tree, frames } = profile;
  const rows = tree.self
    .map((self, node) => ({ node, self, name: frames[tree.frame[node] ?? 0]?.function ?? "" }))
    .filter((row) => row.self > 0)
    .toSorted((a, b) => b.self - a.self)
    .slice(0, 20);
  return (
    <ol>
      {rows.map((row) => (
        <li key={row.node} className="mono">
          {value(row.self, profile.unit)} {sampledShare(row.self, profile.total, profile.samples)} {row.name}
        </li>
      ))}
    </ol>
  );
}
