/* The table of all symbols, the verdict first; every column of the chosen one; all of it as a file. */

const FIRST_ROWS = 100;
const MORE_ROWS = 400; // per click; the file has all rows
const LABELS = { bound: "bound by", seconds: "time", time_share: "share", invocations: "launches", compute_seconds: "compute time", bandwidth_seconds: "bandwidth time",
  overhead_seconds: "overhead", roofline_seconds: "at roofline", label: "step", overhead_bound: "hidden by" };
const SHOWN = ["kernel", "label", "bound", "seconds", "time_share", "inefficiency", "invocations", "precision", "work", "traffic", "intensity", "compute_seconds", "bandwidth_seconds",
  "overhead_seconds", "roofline_seconds", "report"];
const ALL_COLUMNS = Object.keys(PAGE.points).filter((name) => !["text_columns", "name"].includes(name) && tells(name));
const TABLE_COLUMNS = SHOWN.filter((name) => ALL_COLUMNS.includes(name) && (!["report", "invocations", "label"].includes(name) || differs(name)));

/** Whether a column has more than blanks. */
function tells(name) {
  return POINTS.some((point) => point[name] !== "" && point[name] !== null && !(["launch", "step"].includes(name) && point[name] < 0));
}

function differs(name) {
  return POINTS.some((point) => point[name] !== POINTS[0][name]);
}

function labelOf(name) {
  return LABELS[name] || name.replaceAll("_", " ");
}

function isText(name) {
  return PAGE.points.text_columns.includes(name);
}

function cellText(name, point) {
  if (name === "kernel") return point.name;
  if (name === "precision") return PAGE.precisions[point.precision];
  if (name === "bound") return PAGE.bounds[point.bound][0];
  if (name === "inefficiency") return formatFactor(point.inefficiency);
  if (isText(name)) return point[name];
  const [unit] = PAGE.columns[name];
  return unit ? formatColumn(name, point) : String(point[name]);
}

function sorted(points) {
  const { column, descending } = state.sort;
  const sign = descending ? -1 : 1;
  const value = (point) => (isText(column) ? cellText(column, point) : point[column]);
  return [...points].sort((a, b) => {
    const [left, right] = [value(a), value(b)];
    if (left === null || right === null) return (left === null) - (right === null);
    return sign * (typeof left === "string" ? left.localeCompare(right) : left - right);
  });
}

function headerCell(name) {
  const mine = state.sort.column === name;
  const arrow = element("span", { class: "arrow", "aria-hidden": "true" }, mine ? (state.sort.descending ? "\u2193" : "\u2191") : "");
  const button = element("button", { type: "button", class: "sort", "data-sort": name, title: PAGE.columns[name][1] }, labelOf(name), arrow);
  const order = mine ? (state.sort.descending ? "descending" : "ascending") : null;
  return element("th", { scope: "col", class: isText(name) ? null : "num", "aria-sort": order }, button);
}

function tableRow(point) {
  const cells = TABLE_COLUMNS.map((name) => {
    const text = cellText(name, point);
    if (name === "kernel") return element("th", { scope: "row", class: "name", title: point.name }, element("span", {}, shapeIcon(SHAPE_OF.get(point.name) % SHAPES.length), text));
    return element("td", { class: isText(name) ? null : "num", "data-label": labelOf(name) }, element("span", {}, text));
  });
  return element("tr", { "data-row": point.index, tabindex: 0, class: state.chosen === point.index ? "chosen" : null }, ...cells);
}

function drawTable(points) {
  const rows = sorted(points);
  const shown = rows.slice(0, state.rows);
  const head = element("thead", {}, element("tr", {}, ...TABLE_COLUMNS.map(headerCell)));
  document.getElementById("table-scroll").replaceChildren(element("table", {}, head, element("tbody", {}, ...shown.map(tableRow))));
  const more = document.getElementById("show-more");
  more.hidden = shown.length === rows.length;
  more.textContent = `Show ${Math.min(MORE_ROWS, rows.length - shown.length)} more of ${rows.length} rows`;
}

/** Every column of the chosen symbol. */
function drawDetails() {
  const card = document.getElementById("details");
  const point = POINTS.find((each) => each.index === state.chosen);
  card.hidden = !point;
  if (!point) return;
  const close = element("button", { type: "button", class: "button no-print", title: "Esc", onclick: () => choose(point.index) }, "Show all symbols");
  const facts = ALL_COLUMNS.filter((name) => name !== "kernel" && cellText(name, point)).map((name) =>
    element("span", { title: PAGE.columns[name][1] }, element("span", { class: "muted" }, `${labelOf(name)} `), cellText(name, point)));
  card.replaceChildren(element("div", { class: "head" }, element("h2", {}, shorten(point.name, 200)), close), element("div", { class: "facts" }, ...facts));
}

function saveTable() {
  const header = (name) => (PAGE.columns[name][0] ? `${labelOf(name)} [${unitSymbol(name)}]` : labelOf(name));
  const value = (name, point) => (isText(name) ? cellText(name, point) : point[name]);
  downloadCsv(fileName(), ALL_COLUMNS.map(header), sorted(shownPoints()).map((point) => ALL_COLUMNS.map((name) => value(name, point))));
}

function unitSymbol(name) {
  return PAGE.units[PAGE.columns[name][0]][0] || "ratio";
}
