/* The columns of the table, the verdict first; every column of the chosen symbol. */

const LABELS = { bound: "bound by", seconds: "time", time_share: "share", invocations: "launches", compute_seconds: "compute time", bandwidth_seconds: "bandwidth time",
  overhead_seconds: "overhead", roofline_seconds: "at roofline", label: "step", overhead_bound: "hidden by" };
const SHOWN = ["kernel", "label", "bound", "seconds", "time_share", "inefficiency", "invocations", "precision", "work", "traffic", "intensity", "compute_seconds", "bandwidth_seconds",
  "overhead_seconds", "roofline_seconds", "report"];
const ALL_COLUMNS = Object.keys(PAGE.points).filter((name) => !["rows", "text_columns", "name"].includes(name) && tells(name)).map(columnOf);
const COLUMNS = SHOWN.flatMap((name) => ALL_COLUMNS.find((column) => column.id === name) || []).filter(({ id }) => !["report", "invocations", "label"].includes(id) || differs(id));

/** Whether a column has more than blanks. */
function tells(name) {
  return POINTS.some((point) => point[name] !== "" && point[name] !== null && !(["launch", "step"].includes(name) && point[name] < 0));
}

function differs(name) {
  return POINTS.some((point) => point[name] !== POINTS[0][name]);
}

function columnOf(name) {
  const [unit, title] = PAGE.columns[name];
  const label = LABELS[name] || name.replaceAll("_", " ");
  if (PAGE.points.text_columns.includes(name)) {
    const texts = { kernel: (point) => point.name, precision: (point) => PAGE.precisions[point.precision], bound: (point) => PAGE.bounds[point.bound][0] };
    const column = textColumn(name, label, texts[name] || ((point) => point[name]), { title });
    return name === "kernel" ? { ...column, show: nameCell } : column;
  }
  const plain = (point) => (unit ? formatColumn(name, point) : String(point[name]));
  return numberColumn(name, label, (point) => point[name], name === "inefficiency" ? (point) => formatFactor(point.inefficiency) : plain, { title, unit });
}

function nameCell(point) {
  return element("span", { class: "label", title: point.name }, shapeIcon(SHAPE_OF.get(point.name) % SHAPES.length), point.name);
}

function drawTable(points) {
  drawRows(COLUMNS, sortedRows(COLUMNS, points), (point) => {
    const chosen = state.chosen === point.index;
    return { key: point.index, chosen, kind: chosen ? "chosen" : "" };
  });
}
