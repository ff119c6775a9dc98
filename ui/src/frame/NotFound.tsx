import { Link } from "@tanstack/react-router";

import { Empty } from "../parts/State";

/** An address that no screen has. */
export function NotFound() {
  return (
    <Empty title="There is no such screen" actions={<Link to="/">Home</Link>}>
      The address may be from another version of Spanflame.
    </Empty>
  );
}
