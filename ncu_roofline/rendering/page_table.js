/* The table of a page: rows under COLUMNS that say how they read, sorted by any of them, some at first, all as a file.
 *
 * A page brings COLUMNS; one is {id, label, number, value(row), show(row)}: what a file has, what people see.  It may have a title, the unit of the file, rank(row)
 * to be sorted by, heading and file(row) (the header and the values of the file), colour, once (the same in all rows of a kernel), kind(row) (the
 * class of a cell) and wide (a line of its own on a phone).  The first column names a row.
 * The state has the sort {column, descending}, "" for the rows as they come, and how many rows are drawn. */

const FIRST_ROWS = 100;
const MORE_ROWS = 400; // per click; the file has all rows

function textColumn(id, label, value, more = {}) {
  return { id, label, value, show: value, number: false, ...more };
}

function numberColumn(id, label, value, show, more = {}) {
  return { id, label, value, show, number: true, ...more };
}

/** Columns as they are declared in Python (PAGE.columns: unit, meaning and perhaps a label by name), those that say anything of some rows.  `labels`
 * are what the page calls them, `own` is what is particular to some. */
function declaredColumns(rows, own, labels = {}) {
  const says = (value) => known(value) ? value !== -1 : Boolean(value);
  return Object.entries(PAGE.columns).filter(([name]) => rows.some((row) => says(row[name]))).map(([name, [unit, title, label]]) => {
    const value = (row) => row[name];
    const show = (row) => (known(value(row)) ? (unit ? formatColumn(name, row) : String(value(row))) : "");
    const more = { title, ...own[name] };
    const make = rows.some((row) => known(value(row))) ? numberColumn(name, "", value, show, { unit, ...more }) : textColumn(name, "", more.value || value, more);
    return { ...make, label: labels[name] || label || name.replaceAll("_", " ") };
  });
}

/** Rows in the order of the chosen column; what is not known comes last, and `tie` decides between equals. */
function sortedRows(rows, tie = () => 0) {
  const column = COLUMNS.find((each) => each.id === state.sort.column);
  if (!column) return rows;
  const rank = column.rank || column.value;
  const sign = state.sort.descending ? -1 : 1;
  const absent = (value) => value === null || value === undefined || value === "";
  return [...rows].sort((a, b) => {
    const [left, right] = [rank(a), rank(b)];
    if (absent(left) || absent(right)) return absent(left) - absent(right) || tie(a, b);
    return sign * (column.number ? left - right : left.localeCompare(right)) || tie(a, b);
  });
}

function headerCell(column) {
  const active = state.sort.column === column.id;
  const arrow = element("span", { class: "arrow", "aria-hidden": "true" }, active ? (state.sort.descending ? "\u25be" : "\u25b4") : "");
  const dot = column.colour ? element("span", { class: "dot", colour: column.colour() }) : null;
  const button = element("button", { type: "button", class: "sort", "data-sort": column.id, title: column.title || null }, dot, column.label, arrow);
  const direction = active ? (state.sort.descending ? "descending" : "ascending") : "none";
  return element("th", { scope: "col", class: column.number ? "num" : null, "aria-sort": direction }, button);
}

/** A row; what is the same in all rows of a kernel is hidden `again` below another of it. */
function tableRow(row, { key, kind = "", again = false, chosen = false, focusable = false }) {
  const cells = COLUMNS.map((column, index) => {
    const hidden = again && (column.once || !index);
    const classes = [column.number && "num", !index && "name", hidden && "again", column.wide && "wide", column.kind && column.kind(row)].filter(Boolean).join(" ");
    return element(index ? "td" : "th", { class: classes || null, scope: index ? null : "row", "data-label": column.label }, element("span", {}, column.show(row)));
  });
  const classes = [kind, again && "more"].filter(Boolean).join(" ");
  return element("tr", { "data-row": key, tabindex: focusable ? 0 : -1, class: classes || null, "aria-current": chosen && "true" }, ...cells);
}

/** The table anew; `describe(row, above)` says what tableRow asks of a row. */
function drawRows(rows, describe) {
  const shown = rows.slice(0, state.rows);
  const told = shown.map((row, index) => describe(row, shown[index - 1]));
  const focus = Math.max(0, told.findIndex(({ chosen }) => chosen));
  const body = shown.map((row, index) => tableRow(row, { ...told[index], focusable: index === focus }));
  const head = element("thead", {}, element("tr", {}, ...COLUMNS.map(headerCell)));
  byId("table-scroll").replaceChildren(element("table", { "aria-rowcount": rows.length }, head, element("tbody", {}, ...body)));
  const more = byId("show-more");
  more.hidden = shown.length === rows.length;
  more.textContent = `Show ${Math.min(MORE_ROWS, rows.length - shown.length)} more of ${rows.length} rows`;
}

/** By a column, then the other way round, then again as they come where that is an order of its own. */
function sortBy(id) {
  const first = { column: id, descending: COLUMNS.find((each) => each.id === id).number };
  const fresh = freshState().sort;
  const begun = state.sort.column !== id ? null : state.sort.descending === first.descending;
  change(() => { state.sort = begun === null ? first : begun ? { column: id, descending: !first.descending } : fresh.column ? first : fresh; });
  [...document.querySelectorAll("[data-sort]")].find((button) => button.dataset.sort === id).focus({ preventScroll: true });
}

/** The sort as an address has it: its column, "-" before it where it goes down. */
const SORT = {
  of: "sort",
  write: ({ column, descending }) => (descending ? "-" : "") + column,
  read: (text) => {
    const column = text.replace(/^-/, "");
    return COLUMNS.some((each) => each.id === column) ? { column, descending: text.startsWith("-") } : undefined;
  },
};

/** A value as a cell of a CSV file: every digit; a text that a spreadsheet would take for a formula gets an apostrophe before it. */
function csvCell(value) {
  if (typeof value !== "string") return known(value) ? String(value) : "";
  const safe = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\n\r]/.test(safe) ? `"${safe.replace(/"/g, '""')}"` : safe;
}

/** All rows, in the order of the table, as a file that the browser saves: CSV with some columns, in the units of SI. */
function saveRows(columns, rows) {
  const headers = columns.map(({ label, unit, heading }) => heading || (unit ? `${label} [${PAGE.units[unit][0] || "ratio"}]` : label));
  const cells = rows.map((row) => columns.map((column) => (column.file || column.value)(row)));
  const text = [headers, ...cells].map((line) => `${line.map(csvCell).join(",")}\n`).join("");
  const url = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  element("a", { href: url, download: `${downloadName()}.csv` }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

/** The title of the page as the name of a file. */
function downloadName() {
  return PAGE.title.replace(/[^A-Za-z0-9._]+/g, "-").replace(/^[-.]+|-$/g, "").slice(0, 80) || "roofline";
}

/** Headers sort; rows are chosen by click, Enter or space where the page can `choose` one, and the arrow keys go from one to the next. */
function wireRows(choose = null) {
  const rowOf = (event) => event.target.closest("#table-scroll tbody tr");
  const table = byId("table-scroll");
  table.addEventListener("click", (event) => {
    const header = event.target.closest("[data-sort]");
    if (header) return sortBy(header.dataset.sort);
    return choose && rowOf(event) && choose(Number(rowOf(event).dataset.row));
  });
  table.addEventListener("keydown", (event) => {
    const line = rowOf(event);
    if (!line) return;
    const next = { ArrowDown: line.nextElementSibling, ArrowUp: line.previousElementSibling }[event.key];
    if (choose && (event.key === "Enter" || event.key === " ")) {
      choose(Number(line.dataset.row));
      document.querySelector(`#table-scroll tr[data-row="${line.dataset.row}"]`)?.focus({ preventScroll: true });
    } else if (next) {
      line.tabIndex = -1;
      next.tabIndex = 0;
      next.focus();
    } else return;
    event.preventDefault();
  });
  byId("show-more").addEventListener("click", () => change(() => { state.rows += MORE_ROWS; }));
}
