/* What pages have in common: a choice changes the state, and everything is drawn from that.
 *
 * A page brings freshState(), stateOf(link), choices() and update(). */

const TYPING = 120; // milliseconds of rest before a typed filter is drawn
let typing = 0; // the timer of a filter that is typed and not drawn yet
let state; // what the reader has chosen: set at the start

function byId(id) {
  return document.getElementById(id);
}

function positive(...values) {
  return values.every((value) => known(value) && value > 0);
}

/** The value of a variable of the style. */
function style(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function palette() {
  return Object.fromEntries(["card", "text", "muted", "grid", "line", "neutral", "accent"].map((name) => [name, style(`--${name}`)]));
}

function isDark() {
  return document.documentElement.dataset.theme === "dark";
}

/** Change the state, then draw everything from it; what is `typed` makes one step of the history. */
function change(action, typed = false) {
  if (typing) state.query = byId("query").value;
  stopTyping();
  action();
  update();
  writeLink(choices(), typed);
}

function stopTyping() {
  clearTimeout(typing);
  typing = 0;
}

function wireQuery() {
  byId("query").addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(() => change(() => {}, true), TYPING);
  });
}

function showQuery() {
  if (byId("query").value !== state.query) byId("query").value = state.query;
}

/** Redraw a group of controls and give the focus back to the one that had it. */
function fill(group, children) {
  const inside = [...group.querySelectorAll("select, input, button")];
  const focused = inside.indexOf(document.activeElement);
  group.replaceChildren(...children);
  if (focused >= 0) [...group.querySelectorAll("select, input, button")][focused]?.focus();
}

/** A list to choose from: [value, text] each. */
function picker(label, values, value, pick) {
  const options = values.map(([id, text]) => element("option", { value: id, selected: id === value }, shorten(text, 80)));
  return element("label", {}, `${label} `, element("select", { "data-pick": label, onchange: (event) => change(() => pick(event.target.value)) }, ...options));
}

/** A text to the clipboard; where there is none `select` leaves it selected for Ctrl+C.  The button tells for a moment. */
async function copyText(text, button, select) {
  const name = (button.dataset.name ||= button.textContent);
  const done = await navigator.clipboard?.writeText(text).then(() => true, () => false);
  if (!done) select();
  button.textContent = done ? "Copied" : "Selected";
  setTimeout(() => { button.textContent = name; }, 1500);
}

function copyCommand(button) {
  const code = button.parentElement.querySelector("code");
  copyText(code.textContent, button, () => getSelection().selectAllChildren(code));
}

/** On paper all is open and light; `draw` is told whether it draws for paper. */
function wirePrinting(draw) {
  let closed = null; // what was opened for the paper; null while nothing is printed
  const begin = () => {
    if (closed) return;
    closed = [...document.querySelectorAll("details:not([open])")].filter((each) => !each.closest(".no-print"));
    for (const each of closed) each.open = true;
    setTheme("light");
    draw(true);
  };
  const end = () => {
    for (const each of closed || []) each.open = false;
    closed = null;
    applyTheme();
    draw(false);
  };
  addEventListener("beforeprint", begin);
  addEventListener("afterprint", end);
  matchMedia("print").addEventListener("change", ({ matches }) => (matches ? begin() : end()));
}

/** Draw from the address, then follow it; of a page with nothing to choose (`any`) only the theme changes.
 *
 * `draw(paper)` draws all that a theme or paper changes, `wire` waits for the reader, `restore` draws what an address chose. */
function startPage(any, draw, wire, restore = () => draw(false)) {
  state = stateOf(readLink() || new URLSearchParams());
  applyTheme();
  followTheme(() => draw(false));
  for (const button of document.querySelectorAll(".copy")) button.addEventListener("click", () => copyCommand(button));
  wirePrinting(draw);
  if (!any) return;
  byId("app").hidden = false;
  update();
  writeLink(choices());
  followLink((link) => {
    stopTyping();
    state = stateOf(link);
    applyTheme();
    restore();
  });
  wire();
  wireKeys();
}
