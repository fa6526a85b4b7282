/* The rows and columns of a comparison.  All texts come formatted; values are SI. */

const ROWS = PAGE.names ? PAGE.names.map((name, index) => ({ name, index })) : [];
const COLUMNS = PAGE.columns.map(columnOf);

function columnOf({ label, heading, texts, values }, place) {
  const title = heading.replace(/ \[s\]$/, "");
  const text = (row) => texts[row.index];
  if (values) return numberColumn(heading, label, (row) => values[row.index], text, { heading, title });
  const kind = label === "Change" ? (row) => `text ${PAGE.outcomes[row.index]}`.trim() : () => "text";
  const show = place ? text : (row) => element("span", { title: row.name }, text(row));
  return { ...textColumn(heading, label, text, { heading, title, kind: place ? kind : null, wide: ["Change", "Verdict"].includes(label) }), show };
}

/** Rows that pass the filters: as they come in the order of the change of time. */
function chosenRows() {
  const query = state.query.trim().toLowerCase();
  const passes = (row) => (!state.changed || PAGE.changed[row.index]) && `${COLUMNS[0].value(row)}\n${row.name}`.toLowerCase().includes(query);
  return sortedRows(COLUMNS, ROWS.filter(passes), (a, b) => a.index - b.index);
}

function update() {
  const rows = chosenRows();
  drawRows(COLUMNS, rows, (row) => ({ key: row.index }));
  byId("count").textContent = rows.length === ROWS.length ? counted(ROWS.length, "row") : `${rows.length} of ${counted(ROWS.length, "row")}`;
  byId("changed").setAttribute("aria-pressed", String(state.changed));
  showQuery();
}

function freshState() {
  return { query: "", changed: false, sort: { column: "", descending: false }, rows: FIRST_ROWS, theme: "" };
}

/** What differs from a fresh page, for its address. */
function choices() {
  const found = { q: state.query, changed: state.changed ? "1" : "", sort: sortWord(freshState().sort), theme: state.theme };
  return Object.entries(found).filter(([, value]) => value);
}

/** The state that an address describes; what is not known here is passed over. */
function stateOf(link) {
  const get = (name) => link.get(name) || "";
  const theme = ["light", "dark"].includes(get("theme")) ? get("theme") : "";
  const fresh = freshState();
  return { ...fresh, query: get("q").slice(0, 500), changed: get("changed") === "1", sort: sortOf(COLUMNS, get("sort"), fresh.sort), theme };
}

/** On paper all rows. */
function redraw(paper) {
  if (!COLUMNS.length) return;
  const { rows } = state;
  if (paper) state.rows = ROWS.length;
  update();
  state.rows = rows;
}

function wire() {
  wireQuery();
  wireRows(COLUMNS);
  wireMenu({ columns: COLUMNS, rows: chosenRows, saved: [{ ...textColumn("name", "name", (row) => row.name) }, ...COLUMNS] });
  byId("changed").addEventListener("click", () => change(() => { state.changed = !state.changed; }));
}

startPage(COLUMNS.length > 0, redraw, wire);
