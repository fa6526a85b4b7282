/* The theme of a page: what the reader chose, what the page was made with, or what the system prefers. */

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  document.getElementById("theme").textContent = theme === "dark" ? "Light" : "Dark";
}

function preferredTheme() {
  return matchMedia("(prefers-color-scheme: dark)");
}

function applyTheme() {
  setTheme(state.theme || (PAGE.theme === "auto" ? (preferredTheme().matches ? "dark" : "light") : PAGE.theme));
}

/** Follow the system and the button; `redraw` draws what style sheets don't colour. */
function followTheme(redraw = () => {}) {
  preferredTheme().addEventListener("change", () => { applyTheme(); redraw(); });
  document.getElementById("theme").addEventListener("click", () => {
    state.theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    applyTheme();
    redraw();
    writeLink(choices(), true);
  });
}
