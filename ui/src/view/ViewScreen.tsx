import { Empty } from "../parts/State";

export function ViewScreen() {
  return <Empty title="View" />;
}
