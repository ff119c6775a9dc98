/** Spans: find the slow ones. */

import { Empty } from "../parts/State";

export function SpansScreen() {
  return <Empty title="Spans" />;
}
