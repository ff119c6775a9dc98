/** Names of profile types for people. A full type is `name:sample_type:sample_unit:period_type:period_unit`. */

/** The type that is asked for where nobody chose one. */
export const PROFILE_TYPE_DEFAULT = "cpu";

/** `CPU`; `memory · alloc_space`; `mutex · contentions`. */
export function profileTypeName(type: string): string {
  if (type === PROFILE_TYPE_DEFAULT) return "CPU";
  const [name = "", sampleType] = type.split(":");
  if (!sampleType || sampleType === name) return name;
  return `${name} · ${sampleType}`;
}
