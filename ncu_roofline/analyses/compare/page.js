/* The rows and columns of a comparison.  All texts come formatted; values are SI. */

const ROWS = PAGE.names ? PAGE.names.map((name, index) => ({ name, index })) : [];
const COLUMNS = PAGE.columns.map(columnOf);
const CHOICES = { q: QUERY, changed: { of: "changed", write: (changed) => (changed ? "1" : ""), read: (text) => text === "1" }, sort: SORT, theme: THEME };

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
  const passes = (row) => (!state.changed || PAGE.changed[row.index]) && passesQuery(COLUMNS[0].value(row), row.name);
  return sortedRows(ROWS.filter(passes), (a, b) => a.index - b.index);
}

function update() {
  const rows = chosenRows();
  drawRows(rows, (row) => ({ key: row.index }));
  byId("count").textContent = rows.length === ROWS.length ? counted(ROWS.length, "row") : `${rows.length} of ${counted(ROWS.length, "row")}`;
  byId("changed").setAttribute("aria-pressed", String(state.changed));
  showQuery();
}

function freshState() {
  return { query: "", changed: false, sort: { column: "", descending: false }, rows: FIRST_ROWS, theme: "" };
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
  wireRows();
  wireMenu({ rows: chosenRows, saved: () => [textColumn("name", "name", (row) => row.name), ...COLUMNS] });
  byId("changed").addEventListener("click", () => change(() => { state.changed = !state.changed; }));
}

startPage(COLUMNS.length > 0, redraw, wire);
