/* The columns of the table, the verdict first; every column of the chosen symbol. */

const LABELS = { bound: "bound by", seconds: "time", time_share: "share", invocations: "launches", compute_seconds: "compute time", bandwidth_seconds: "bandwidth time",
  overhead_seconds: "overhead", roofline_seconds: "at roofline", label: "step", overhead_bound: "hidden by" };
const SHOWN = ["kernel", "label", "bound", "seconds", "time_share", "inefficiency", "invocations", "precision", "work", "traffic", "intensity", "compute_seconds", "bandwidth_seconds",
  "overhead_seconds", "roofline_seconds", "report"];
const ALL_COLUMNS = declaredColumns(POINTS, {
  kernel: { value: (point) => point.name, show: nameCell },
  precision: { value: (point) => PAGE.precisions[point.precision] },
  bound: { value: (point) => PAGE.bounds[point.bound][0] },
  inefficiency: { show: (point) => formatFactor(point.inefficiency) },
}, LABELS);
const COLUMNS = SHOWN.flatMap((name) => ALL_COLUMNS.find((column) => column.id === name) || []).filter(({ id }) => !["report", "invocations", "label"].includes(id) || differs(id));

function differs(name) {
  return POINTS.some((point) => point[name] !== POINTS[0][name]);
}

function nameCell(point) {
  return element("span", { class: "label", title: point.name }, shapeIcon(SHAPE_OF.get(point.name) % SHAPES.length), point.name);
}
