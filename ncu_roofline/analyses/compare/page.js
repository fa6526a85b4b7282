/* The table of a comparison: sorted, filtered, kept in the address and written as CSV.  All texts come formatted; values are SI. */

const FIRST = 200; // rows that are drawn at once
const BARE = ["Change", "Verdict"]; // columns whose texts say what they are
let state = {};
const byId = (id) => document.getElementById(id);

/** Which rows are shown, in their order: that of the change of time, or of the column chosen; what is unknown comes last. */
function chosen() {
  const query = state.query.toLowerCase();
  const rows = PAGE.names.map((_, row) => row).filter((row) =>
    (!state.changed || PAGE.changed[row]) && `${PAGE.columns[0].texts[row]}\n${PAGE.names[row]}`.toLowerCase().includes(query));
  if (state.sort < 0) return rows;
  const { texts, values } = PAGE.columns[state.sort];
  const sign = state.down ? -1 : 1;
  const missing = (row) => (values ? values[row] === null : texts[row] === "");
  return rows.sort((a, b) => {
    if (missing(a) || missing(b)) return missing(a) - missing(b) || a - b;
    return sign * (values ? values[a] - values[b] : texts[a].localeCompare(texts[b])) || a - b;
  });
}

function sortBy(index) {
  const numbers = Boolean(PAGE.columns[index].values);
  if (state.sort !== index) change({ sort: index, down: numbers });
  else if (state.down === numbers) change({ down: !numbers });
  else change({ sort: -1, down: false });
}

/** Columns that are shown, by number: the states between the first and the last are folded away. */
function shownColumns() {
  return PAGE.columns.map((_, index) => index).filter((index) => state.between || !PAGE.columns[index].between);
}

function heading(index) {
  const column = PAGE.columns[index];
  const arrow = state.sort === index ? (state.down ? "\u25be" : "\u25b4") : "";
  const button = element("button", { type: "button", class: "sort", onclick: () => sortBy(index) }, column.label, element("span", { class: "arrow", "aria-hidden": "true" }, arrow));
  const sorted = state.sort === index ? (state.down ? "descending" : "ascending") : null;
  return element("th", { scope: "col", class: column.values ? "num" : "", title: labelOf(index), "aria-sort": sorted }, button);
}

/** What a column is called where its heading is not above it: the second of a pair is named after the first. */
function labelOf(index) {
  return PAGE.columns[index].heading.replace(/ \[s\]$/, "");
}

function line(row) {
  const cells = shownColumns().map((index) => {
    const column = PAGE.columns[index];
    if (!index) return element("th", { scope: "row", title: PAGE.names[row] }, column.texts[row]);
    const colour = column.label === "Change" ? PAGE.outcomes[row] : "";
    const kind = column.values ? "num" : `text ${BARE.includes(column.label) ? "bare" : ""} ${colour}`.trim();
    return element("td", { class: kind, "data-label": labelOf(index) }, column.texts[row]);
  });
  return element("tr", {}, ...cells);
}

function draw() {
  if (!PAGE.columns.length) return;
  const rows = chosen();
  const shown = state.all ? rows : rows.slice(0, FIRST);
  const focused = [...byId("rows").querySelectorAll(".sort")].indexOf(document.activeElement);
  const table = element("table", {}, element("thead", {}, element("tr", {}, ...shownColumns().map(heading))), element("tbody", {}, ...shown.map(line)));
  byId("rows").replaceChildren(table);
  if (focused >= 0) byId("rows").querySelectorAll(".sort")[focused].focus();
  const every = `${PAGE.names.length} row${PAGE.names.length === 1 ? "" : "s"}`;
  byId("count").textContent = rows.length === PAGE.names.length ? every : `${rows.length} of ${every}`;
  byId("show-all").hidden = shown.length === rows.length;
  byId("show-all").textContent = `Show all ${rows.length} rows`;
  for (const id of ["changed", "between"]) byId(id).setAttribute("aria-pressed", String(state[id]));
  if (byId("query").value !== state.query) byId("query").value = state.query;
  byId("sort").value = String(state.sort);
}

function save() {
  const rows = chosen().map((row) => [PAGE.names[row], ...PAGE.columns.map(({ texts, values }) => (values || texts)[row])]);
  downloadCsv(fileName(), ["name", ...PAGE.columns.map((column) => column.heading)], rows);
}

/** What differs from a fresh page, for its address. */
function choices() {
  const found = {
    q: state.query,
    changed: state.changed ? "1" : "",
    states: state.between ? "1" : "",
    sort: state.sort < 0 ? "" : (state.down ? "-" : "") + PAGE.columns[state.sort].heading,
    theme: state.theme,
  };
  return Object.entries(found).filter(([, value]) => value);
}

/** The state that an address describes; what is not known here is passed over. */
function stateOf(link) {
  const get = (name) => link.get(name) || "";
  const theme = ["light", "dark"].includes(get("theme")) ? get("theme") : "";
  const sort = PAGE.columns.findIndex((column) => column.heading === get("sort").replace(/^-/, ""));
  return { query: get("q").slice(0, 500), changed: get("changed") === "1", between: get("states") === "1", sort, down: get("sort").startsWith("-"), theme, all: false };
}

/** Act on the state, and keep it in the address; `typed` text replaces the last entry of the history. */
function change(choice, typed = false) {
  Object.assign(state, choice);
  draw();
  writeLink(choices(), typed);
}

function wirePrinting() {
  let all = false;
  addEventListener("beforeprint", () => {
    all = state.all;
    state.all = true;
    setTheme("light");
    draw();
  });
  addEventListener("afterprint", () => {
    state.all = all;
    applyTheme();
    draw();
  });
}

function wireTable() {
  byId("table").hidden = false;
  byId("between").hidden = !PAGE.columns.some((column) => column.between);
  byId("sort").append(element("option", { value: "-1" }, "time saved or lost"), ...PAGE.columns.map((_, index) => element("option", { value: String(index) }, labelOf(index))));
  byId("sort").addEventListener("change", (event) => {
    const index = Number(event.target.value);
    change({ sort: index, down: index >= 0 && Boolean(PAGE.columns[index].values) });
  });
  byId("query").addEventListener("input", (event) => change({ query: event.target.value }, true));
  byId("changed").addEventListener("click", () => change({ changed: !state.changed }));
  byId("between").addEventListener("click", () => change({ between: !state.between }));
  byId("show-all").addEventListener("click", () => { state.all = true; draw(); });
  byId("csv").addEventListener("click", save);
}

/** Take the choices of an address. */
function restore(link) {
  state = stateOf(link);
  applyTheme();
  draw();
}

function start() {
  state = stateOf(readLink() || new URLSearchParams());
  applyTheme();
  followTheme();
  if (PAGE.columns.length) wireTable();
  draw();
  writeLink(choices());
  followLink(restore);
  wirePrinting();
}

start();
