/** The zone in which times are shown: the browser's, or UTC. */

import { preference } from "../parts/preference";

/** The zone, and how to choose it. */
export const useZone = preference("zone", ["local", "utc"]).use;
