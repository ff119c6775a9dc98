import { Empty } from "../parts/State";

export function CompareScreen() {
  return <Empty title="Compare" />;
}
