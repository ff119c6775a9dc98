/** Measures that the charts of one screen share, so that their time axes stand under each other. In CSS pixels. */

/** Left of the plots: the labels of the vertical axes. */
export const GUTTER = 60;
/** Right of the plots. */
export const RIGHT = 8;
