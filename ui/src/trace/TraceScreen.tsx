import { Empty } from "../parts/State";

export function TraceScreen() {
  return <Empty title="Trace" />;
}
