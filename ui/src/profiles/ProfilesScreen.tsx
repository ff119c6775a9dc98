import { Empty } from "../parts/State";

export function ProfilesScreen() {
  return <Empty title="Profiles" />;
}
