/* The columns of the table, and the card of a chosen kernel: the same rows as the chart. */

const NUMBERS = [
  "work", "traffic", "seconds", "intensity", "performance", "bandwidth", "compute_roof", "bandwidth_roof", "attainable", "fraction", "attainable_theoretical",
  "fraction_theoretical", "binding_fraction", "fma_share", "mix_roof", "lanes", "locality", "clock_profiled", "clock_max", "clock_ratio", "coverage",
];

function levelLabel(id) {
  return LEVELS.has(id) ? LEVELS.get(id).label : id;
}

/** Readable form of a level id or roof id. */
function bindsLabel(id) {
  const roof = ROOFS.find((each) => each.roof === id);
  return LEVELS.has(id) ? levelLabel(id) : (roof && roof.label) || id;
}

const CUT_NAMES = shortenApart(KERNELS.map((kernel) => kernel.kernel), 90);

const SOURCE_TEXTS = { binding: "counted by its own counters", opcodes: "counted from executed opcodes", derived: "derived from other counters", embedded: "taken from the report's own chart" };

/** Where a number comes from. */
function originOf(column, point) {
  if (column === "work" || column === "traffic") return SOURCE_TEXTS[point.source] || point.source;
  if (column.endsWith("_theoretical")) return "theoretical roof";
  if (column === "attainable" || column === "fraction") return point.roof_origin ? `${point.roof_origin} roof` : "";
  if (column === "binding_fraction") return point.binds ? `lowest roof: ${bindsLabel(point.binds)}` : "";
  if (column === "compute_roof" || column === "bandwidth_roof") return "at the clock of its launches";
  if (column === "fma_share") return "fused among floating-point instructions";
  if (column === "mix_roof") return `${formatPercent((1 + point.fma_share) / 2)} of the compute roof`;
  if (column === "locality") return point.locality_to ? `traffic over that of ${levelLabel(point.locality_to)}` : "";
  const formulas = { intensity: "work / traffic", performance: "work / time", bandwidth: "traffic / time", clock_ratio: "profiled / maximum" };
  return formulas[column] || "report";
}

function columnLabel(column) {
  const names = { seconds: "time", fraction: "% of attainable", binding_fraction: "% of lowest roof", fraction_theoretical: "% of theoretical", attainable_theoretical: "attainable, theoretical",
    compute_roof: "compute roof", bandwidth_roof: "bandwidth roof", fma_share: "FMA share", mix_roof: "FMA-mix ceiling" };
  return names[column] || column.replace(/_/g, " ");
}

/* The table */

/** A headroom, as `as_times` writes it in Python. */
function timesText(value) {
  if (!known(value)) return "\u2013";
  if (value < 9.95) return `${value.toFixed(value < 1.095 ? 2 : 1)}x`;
  return `${Number(value.toPrecision(2)).toLocaleString("en-US")}x`;
}

/** That of a kernel: at this or less where something may be fuller than what was looked at. */
function headroomText(kernel) {
  return (kernel.headroom_or_less === 1 ? "\u2264" : "") + timesText(kernel.headroom);
}

function verdictColumns() {
  const show = (row) => element("span", { title: row.kernel.reason || null }, row.kernel.verdict);
  const saved = ({ recoverable, seconds }) => (known(recoverable) ? formatValue(recoverable, "second", 3) : known(seconds) ? "unknown" : MISSING);
  return [
    { ...textColumn("verdict", "Verdict", (row) => row.kernel.verdict, { wide: true }), show },
    numberColumn("headroom", "Headroom", (row) => row.kernel.headroom, (row) => headroomText(row.kernel), { title: "How many times as fast the kernel could be at its present traffic and instructions" }),
    numberColumn("headroom_compute", "To compute", (row) => row.kernel.headroom_compute, (row) => timesText(row.kernel.headroom_compute), { title: "How many times as fast it could be at the compute roofs of its work" }),
    numberColumn("recoverable", "Could save", (row) => row.kernel.recoverable, (row) => saved(row.kernel),
      { unit: "second", rank: (row) => -row.kernel.rank, title: "Time that its headroom would save; in the order unknown headroom counts as the whole time, and kernels below 1 % of the time come last" }),
  ].map((column) => ({ ...column, once: true }));
}

/** What hardware says of a kernel beside its dots. */
function usageFacts(kernel) {
  const share = (value, text) => (known(value) ? text : "");
  const levels = [...LEVELS.keys()].map((id) => [id, kernel[`bandwidth_${id}`], kernel[`fraction_${id}`]]).filter(([, rate, part]) => known(rate) || known(part));
  return [
    ["verdict", kernel.verdict], ["headroom", share(kernel.headroom, headroomText(kernel))],
    ["to compute roof", share(kernel.headroom_compute, timesText(kernel.headroom_compute))], ["reason", kernel.reason],
    ["busiest", share(kernel.busiest_fraction, `${kernel.busiest_unit} ${formatPercent(kernel.busiest_fraction)}`)],
    ...levels.map(([id, rate, part]) => [levelLabel(id), [known(rate) ? formatValue(rate, "byte/s", 3) : "", known(part) ? formatPercent(part) : ""].filter(Boolean).join(", ")]),
    ["occupancy", [share(kernel.occupancy, formatPercent(kernel.occupancy)), share(kernel.occupancy_theoretical, `of ${formatPercent(kernel.occupancy_theoretical)}`)].join(" ").trim()],
    ["waves", share(kernel.waves, String(Number((kernel.waves || 0).toPrecision(3))))],
  ];
}

/** "SM 40 % (20 % to 60 %)": the mean of a band over the slices that are known, the lowest and the highest. */
function bandText({ label, values }) {
  const found = values.filter(known);
  const mean = found.reduce((sum, value) => sum + value, 0) / found.length;
  return `${label} ${formatPercent(mean)} (${formatPercent(Math.min(...found))} to ${formatPercent(Math.max(...found))})`;
}

/** What was busy over the time of a launch: a text and a line per unit, the fuller the darker; what was not sampled is empty. */
function phaseStrip({ seconds, edges, bands }, kind) {
  const part = (at) => `${((100 * edges[at]) / seconds).toFixed(2)}%`;
  const parts = bands.flatMap((band) => {
    const hue = band.colours ? tone(...band.colours) : "var(--neutral)";
    const stops = band.values.map((value, at) => `${known(value) ? `color-mix(in srgb, ${hue} ${Math.round(100 * Math.min(value, 1))}%, var(--grid))` : "transparent"} ${part(at)} ${part(at + 1)}`);
    const line = element("i");
    line.style.background = `linear-gradient(90deg, ${stops.join(", ")}, transparent ${part(band.values.length)})`;
    return [element("span", {}, bandText(band)), line];
  });
  return element("span", { class: `strip ${kind}`, title: bands.map(bandText).join("\n") }, ...parts);
}

function tableColumns() {
  const kernels = ROWS.map((row) => row.kernel);
  const several = (name) => distinct(kernels.map((kernel) => kernel[name])).length > 1;
  const repeated = distinct(kernels).length > distinct(kernels.map((kernel) => kernel.kernel)).length;
  const once = (column) => ({ ...column, once: true }); // the same in all rows of a kernel
  const [saved, judged] = [true, false].map((last) => (JUDGED ? verdictColumns() : []).filter((column) => (column.id === "recoverable") === last));
  return [
    { ...textColumn("kernel", "Kernel", (row) => row.kernel.kernel), show: nameCell },
    ...(SWEPT ? [once(numberColumn("step", "Step", (row) => row.kernel.step, (row) => row.kernel.label, { file: (row) => row.kernel.label }))] : []),
    ...judged,
    once(numberColumn("seconds", "Time", (row) => row.kernel.seconds, (row) => formatValue(row.kernel.seconds, "second", 3), { unit: "second" })),
    { ...textColumn("precision", PAGE.unit === "inst" ? "Instructions" : "Precision", (row) => PRECISIONS.get(row.precision)), show: precisionCell },
    numberColumn("performance", "Performance", (row) => row.first.performance, (row) => formatValue(row.first.performance, unitOf("performance", row.first), 3), { unit: `${PAGE.unit}/s`, wide: true }),
    numberColumn("binding_fraction", "% of roof", ofRoof, barCell, { title: "Of the lowest roof over all levels; of a precision beside others, which share memory, of its own compute roof" }),
    ...[...LEVELS.values()].filter((level) => POINTS.some((p) => p.level === level.id)).map(intensityColumn),
    ...saved,
    once(numberColumn("time_share", "Share", (row) => row.kernel.time_share, (row) => formatPercent(row.kernel.time_share), { title: "Of the time of all launches" })),
    ...(kernels.some((kernel) => kernel.launches > 1)
      ? [once(numberColumn("launches", "Launches", (row) => row.kernel.launches, (row) => String(row.kernel.launches)))]
      : []),
    ...(POINTS.some((point) => known(point.fma_share)) ? mixColumns() : []),
    ...(POINTS.some((point) => known(point.lanes)) ? [numberColumn("lanes", "Lanes", (row) => row.first.lanes, (row) => formatPercent(row.first.lanes))] : []),
    ...(kernels.some((kernel) => kernel.strip) ? [once({ ...textColumn("strip", "Over time", ({ kernel: { strip } }) => (strip ? strip.bands.map(bandText).join(", ") : ""), { title: "How busy each unit was while the longest sampled launch ran: mean, lowest and highest share of its peak in a slice of its time", wide: true }), show: ({ kernel: { strip } }) => (strip ? phaseStrip(strip, "small") : "") })] : []),
    ...(JUDGED ? [] : [textColumn("binds", "Binds", (row) => bindsLabel(row.first.binds))]),
    ...(repeated && kernels.every((kernel) => kernel.launch >= 0)
      ? [once(numberColumn("launch", "Launch", (row) => row.kernel.launch, (row) => String(row.kernel.launch)))]
      : []),
    ...(several("report") ? [once({ ...textColumn("report", "Report", (row) => row.kernel.report, { wide: true }), show: ({ kernel: { report } }) => element("span", { title: report }, shorten(report, 16)) })] : []),
  ];
}

/** A number of three digits, in powers of ten where it would be long. */
function plainNumber(value) {
  return value !== 0 && (value >= 1e5 || value < 1e-3) ? value.toExponential(2).replace("e+", "e") : String(value >= 1000 ? Math.round(value) : Number(value.toPrecision(3)));
}

function intensityColumn(level) {
  const value = (row) => (row.levels.has(level.id) ? row.levels.get(level.id).intensity : null);
  const show = (row) => (known(value(row)) ? plainNumber(value(row)) : "\u2013");
  const title = PAGE.unit === "inst" ? `Warp instructions per transaction at ${level.label}` : `Arithmetic intensity at ${level.label}, operations per byte`;
  return numberColumn(`intensity-${level.id}`, `${PAGE.unit === "inst" ? "inst/TXN" : "AI"} ${level.label}`, value, show, { colour: () => levelColour(level.id), title });
}

function nameCell(row) {
  return element("span", { class: "label", title: shorten(row.kernel.name || row.kernel.kernel, 600) }, shapeIcon(row.kernel.shape), CUT_NAMES.get(row.kernel.kernel));
}

/** A precision with the way its dots are filled, where there are several. */
function precisionCell(row) {
  const icon = PRECISIONS.size > 1 ? fillIcon(row.precision) : null;
  return element("span", { class: "fill" }, icon, PRECISIONS.get(row.precision));
}

function fillIcon(precision) {
  return shapeIcon(0, FILL_OF.get(precision));
}

function ofRoof({ kernel, precision, first }) {
  const among = precision !== "mixed" && known(first.compute_roof) && ROWS_OF.get(kernel.index).some((row) => row.precision === "mixed");
  return among ? first.performance / first.compute_roof : first.binding_fraction;
}

function barCell(row) {
  const ratio = ofRoof(row);
  const fill = element("i");
  fill.style.width = `${known(ratio) ? Math.min(100, Math.max(0, 100 * ratio)) : 0}%`;
  return element("span", {}, formatPercent(ratio), element("span", { class: "bar", "aria-hidden": "true" }, fill));
}

const COLUMNS = tableColumns();

function sorted(rows) {
  return sortedRows(rows, (a, b) => a.kernel.rank - b.kernel.rank || a.index - b.index);
}

/** The table anew: below another row of its kernel a row doesn't show again what is the kernel's. */
function drawTable(rows) {
  drawRows(sorted(rows), (row, above) => {
    const chosen = state.isolated === row.kernel.index;
    const kind = chosen ? "chosen" : state.isolated === null ? "" : "faded";
    return { key: row.index, kind, chosen, again: Boolean(above) && above.kernel === row.kernel };
  });
}

/** Mark the table rows of the kernel under the pointer. */
function markRows(owner) {
  for (const line of document.querySelectorAll("#table tbody tr.hot")) line.classList.remove("hot");
  if (owner === null) return;
  for (const line of document.querySelectorAll("#table tbody tr")) {
    if (ROWS[Number(line.dataset.row)].kernel.index === owner) line.classList.add("hot");
  }
}

/** Bring the chosen kernel's row into the table's window; the page itself stays where it is. */
function scrollToChosen() {
  const [box, line] = [byId("table-scroll"), document.querySelector("#table tr.chosen")];
  if (line) box.scrollTop = Math.max(0, line.offsetTop - box.clientHeight / 2);
}

/* The card of the chosen kernel: every column of every point */

function drawDetails() {
  const card = byId("details");
  card.hidden = state.isolated === null;
  if (card.hidden) return;
  const kernel = KERNELS[state.isolated];
  const close = element("button", { type: "button", class: "button no-print", id: "restore", title: "Esc" }, "Show all kernels");
  const full = kernel.name && kernel.name !== kernel.kernel ? element("code", { tabindex: "0" }, kernel.name) : null;
  const rows = ROWS.filter((row) => row.kernel === kernel);
  const advice = [...document.querySelectorAll("#advice > details")].find((each) => each.dataset.kernel === kernel.kernel);
  const jump = () => { advice.open = true; advice.scrollIntoView({ block: "start" }); advice.querySelector("summary").focus({ preventScroll: true }); };
  const link = advice ? element("button", { type: "button", class: "button no-print", id: "to-advice", onclick: jump }, "Advice on it") : null;
  card.replaceChildren(
    element("div", { class: "head" }, element("h2", {}, shorten(kernel.kernel, 200)), element("span", { class: "actions" }, link, close)),
    ...[full].filter(Boolean), kernelFacts(kernel), ...(kernel.strip ? [element("h3", {}, `Over the ${formatValue(kernel.strip.seconds, "second", 3)} of its longest sampled launch`), phaseStrip(kernel.strip, "large")] : []), ...rows.flatMap(detailTable),
  );
}

function kernelFacts(kernel) {
  const entries = [
    ["step", kernel.label], ["report", kernel.report], ["launch", kernel.launch >= 0 ? String(kernel.launch) : ""], ["launches", kernel.launches > 1 ? String(kernel.launches) : ""],
    ["kind", kernel.kind], ["grid", kernel.grid], ["block", kernel.block], ["NVTX", kernel.nvtx], ["time", formatValue(kernel.seconds, "second")],
    ["share", formatPercent(kernel.time_share)], ["SM clock", formatValue(kernel.clock_profiled, "hertz")], ...usageFacts(kernel), ["lacks", kernel.missing], ["notes", kernel.notes],
  ];
  const parts = entries.filter(([, value]) => value && value !== MISSING);
  return element("div", { class: "facts" }, ...parts.map(([label, value]) => element("span", {}, element("span", { class: "muted" }, `${label} `), value)));
}

function detailTable(row) {
  const points = [...row.levels.values()];
  const heads = points.map((point) =>
    element("th", { scope: "col", class: "num" }, element("span", { class: "chip-dot", colour: levelColour(point.level) }), levelLabel(point.level)));
  const texts = ["source", "metrics", "notes"].filter((column) => points.some((point) => point[column]));
  const lines = [
    ...NUMBERS.filter((column) => points.some((point) => known(point[column]))).map((column) => detailRow(column, points, true)),
    ...texts.map((column) => detailRow(column, points, false)),
  ];
  const head = element("thead", {}, element("tr", {}, element("th", { scope: "col" }, ""), ...heads));
  const table = element("table", {}, head, element("tbody", {}, ...lines));
  return [element("h3", {}, PRECISIONS.get(row.precision)), element("div", { class: "scroll" }, table)];
}

function detailRow(column, points, number) {
  const cells = points.map((point) => element("td", { class: number ? "num" : "wrap" }, number ? formatColumn(column, point) : point[column]));
  return element("tr", { title: PAGE.columns[column][1] }, element("th", { scope: "row" }, columnLabel(column)), ...cells);
}
