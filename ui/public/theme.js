// Runs before the first paint, so that a dark page does not flash light. src/theme/theme.ts takes over from here.
(function () {
  var choice = null;
  try {
    choice = localStorage.getItem("spanflame.theme");
  } catch (error) {
    // Storage may be forbidden; the system's theme then counts.
  }
  var dark = choice ? choice === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = dark ? "dark" : "light";
})();
