import type { ProfileTypes } from "../api/answers";
import { profileTypes } from "../api/questions";
import { useQuestion } from "../api/useQuestion";
import { PROFILE_TYPE_DEFAULT, profileTypeName } from "../text/profileType";
import { useClock } from "../time/clock";

/** The profile types of the range, and the one that is shown; `undefined` stands for the default. */
export function TypeSelect({ type, onType }: { type: string | undefined; onType: (type: string | undefined) => void }) {
  const { range } = useClock();
  const { query } = useQuestion(profileTypes(range));
  const known: ProfileTypes["profile_types"] = query.data?.profile_types ?? [];
  const chosen = type ?? PROFILE_TYPE_DEFAULT;
  return (
    <select
      className="field"
      aria-label="Profile type"
      value={chosen}
      onChange={(event) => onType(event.target.value === PROFILE_TYPE_DEFAULT ? undefined : event.target.value)}
    >
      {[...new Set([PROFILE_TYPE_DEFAULT, ...known.map((one) => one.type), chosen])].map((one) => (
        <option key={one} value={one}>
          {profileTypeName(one)}
        </option>
      ))}
    </select>
  );
}
