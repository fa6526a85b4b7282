/* The table of all symbols with every column that says something. */

const MOST_ROWS = 300;
const TABLE_COLUMNS = Object.keys(PAGE.points).filter((name) => !["text_columns", "name", "metrics", "source"].includes(name) && tells(name));

/** Whether a column has more than blanks. */
function tells(name) {
  return POINTS.some((point) => point[name] !== "" && point[name] !== null && !(["launch", "step"].includes(name) && point[name] < 0));
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
  const button = element("button", { type: "button", class: "sort", "data-sort": name, title: PAGE.columns[name][1] }, name.replaceAll("_", " "), arrow);
  const order = mine ? (state.sort.descending ? "descending" : "ascending") : null;
  return element("th", { scope: "col", class: isText(name) ? null : "num", "aria-sort": order }, button);
}

function tableRow(point) {
  const cells = TABLE_COLUMNS.map((name) => {
    const text = cellText(name, point);
    if (name === "kernel") return element("th", { scope: "row", class: "name", title: point.name }, shapeIcon(SHAPE_OF.get(point.name) % SHAPES.length), text);
    return element("td", { class: isText(name) ? (name === "notes" ? "wrap" : null) : "num" }, text);
  });
  return element("tr", { "data-row": point.index, tabindex: 0, class: state.chosen === point.index ? "chosen" : null }, ...cells);
}

function drawTable(points) {
  const rows = sorted(points);
  const shown = state.allRows ? rows : rows.slice(0, MOST_ROWS);
  const head = element("thead", {}, element("tr", {}, ...TABLE_COLUMNS.map(headerCell)));
  document.getElementById("table-scroll").replaceChildren(element("table", {}, head, element("tbody", {}, ...shown.map(tableRow))));
  const more = document.getElementById("show-all");
  more.hidden = shown.length === rows.length;
  more.textContent = `Show all ${rows.length}`;
}
