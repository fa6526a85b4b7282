/* What pages have in common: a choice changes the state, and everything is drawn from that.
 *
 * A page brings freshState(), update() and CHOICES, what of the state its address tells: by the name in the address {of, write, read}. `of` is the
 * name in the state, write(value, state) what the address says of a value, a text or several, and read(text, state, texts) the value of that;
 * undefined for what is not known here.  Later ones may look at what earlier ones read. */

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

const QUERY = { of: "query", read: (text) => text.slice(0, 500) };
const THEME = oneOf("theme", ["light", "dark"]);

/** A choice among some values. */
function oneOf(of, values) {
  return { of, read: (text) => values.find((value) => String(value) === text) };
}

/** What differs from a fresh page, for its address: [name, text] each. */
function choices() {
  const fresh = freshState();
  return Object.entries(CHOICES).flatMap(([name, { of, write = (value) => String(value ?? "") }]) => {
    const [texts, before] = [state, fresh].map((one) => [write(one[of], one)].flat());
    return texts.join("\n") === before.join("\n") ? [] : texts.map((text) => [name, text]);
  });
}

/** The state that an address describes. */
function stateOf(link) {
  const made = freshState(link);
  for (const [name, { of, read }] of Object.entries(CHOICES)) {
    const value = link.has(name) ? read(link.get(name), made, link.getAll(name)) : undefined;
    if (value !== undefined) made[of] = value;
  }
  return made;
}

/** All as on a fresh page, but for the theme. */
function reset() {
  change(() => { state = { ...freshState(new URLSearchParams()), theme: state.theme }; });
}

/** Choose a row; the same one again shows all. */
function toggleChosen(index) {
  change(() => { state.chosen = state.chosen === index ? null : index; });
}

/** The one of two colours, on light ground and on dark, that goes with the theme. */
function tone(light, dark) {
  return isDark() ? dark : light;
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

/** Names of the rows that pass the filter hold what is typed. */
function passesQuery(...texts) {
  return texts.join("\n").toLowerCase().includes(state.query.trim().toLowerCase());
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
  byId("reset")?.toggleAttribute("disabled", !any);
  byId("reset")?.addEventListener("click", reset);
  for (const button of document.querySelectorAll(".copy")) {
    const code = button.parentElement.querySelector("code");
    button.addEventListener("click", () => copyText(code.textContent, button, () => getSelection().selectAllChildren(code)));
  }
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
