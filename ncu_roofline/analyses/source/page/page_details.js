/* What is chosen, in numbers: shares, counts, why warps waited, and where the code is inlined. */

const MOST_STALLS = 6;
const MOST_LINKS = 12;

function drawDetails() {
  const { chosen } = state;
  byId("details").hidden = !chosen;
  if (!chosen) return;
  const { title, entry, rows, more } = chosen.loop !== undefined ? loopDetails(chosen.loop) : chosen.row !== undefined ? rowDetails(chosen.row) : lineDetails(chosen);
  const close = element("button", { type: "button", class: "button no-print", onclick: () => choose(null) }, "Close");
  byId("details").replaceChildren(element("div", { class: "head" }, element("h2", {}, title), close), factsOf(entry), ...more, ...stallsOf(rows));
}

function loopDetails(id) {
  const loop = view.loops.get(id);
  const rate = (value) => formatValue(value, view.launch.chart.axes[2], 3);
  const said = [
    known(loop.trips) && `${formatValue(loop.trips, "count", 4)} iterations per entry`,
    known(loop.entries) && `entered ${formatValue(loop.entries, "count", 4)} times by warps`,
    known(loop.performance) && rateText(loop),
    loop.performance_least > 0 && `at least ${rate(loop.performance_least)}: its work over the kernel\u2019s run time`,
    loop.notes,
  ];
  const around = chainOf(id).slice(1, 2).map((outer) => element("p", {}, "Inside ", link(`loop ${numberedLoop(view.loops.get(outer))}`, () => choose({ loop: outer }))));
  return { title: `Loop ${numberedLoop(loop)}`, entry: loop, rows: lit().rows, more: [...said.filter(Boolean).map((part) => element("p", {}, part)), ...around] };
}

function lineDetails({ file, line, of }) {
  const key = keyOf(file, line, of);
  const [entry, rows] = [view.lines.get(key), view.own.get(key) || []];
  const { file: files, line: lines, inlined } = view.instructions;
  const inside = [...(view.inlined.get(key) || [])].sort((a, b) => (shareOfRow(b) || 0) - (shareOfRow(a) || 0)).map((row) => [files[row], lines[row]]);
  const share = entry ? heatOf(entry).within : null;
  const callers = rows.flatMap((row) => (inlined[row] || []).slice(0, 1));
  const more = [
    ...linksTo(`Inlined here${share > 0 ? ` (${formatPercent(share)} ${measureNow().said})` : ""}: `, inside),
    ...linksTo("Inlined at: ", callers),
  ];
  return { title: lineName(file, line, of), entry, rows, more };
}

/** A sentence with links to places, each once. */
function linksTo(lead, places) {
  const each = [...new Map(places.map((place) => [keyOf(...place), place])).values()];
  const links = each.slice(0, MOST_LINKS).flatMap(([file, line]) => [jump(file, line), " "]);
  const rest = each.length > MOST_LINKS ? [`and ${each.length - MOST_LINKS} more`] : [];
  return each.length ? [element("p", {}, lead, ...links, ...rest)] : [];
}

function jump(file, line) {
  return link(lineName(file, line), () => choose({ file, line }));
}

/** An instruction by its offset, or by its address where the function is not known. */
function rowName(row) {
  const { offset, address } = view.instructions;
  return offset[row] < 0 ? `0x${address[row]}` : hex(offset[row]);
}

function rowDetails(row) {
  const columns = view.instructions;
  const names = ["executed", "lanes", "work", "work_int32", "requested", "local"];
  const entry = { shares: columns.shares.map((column) => column[row]), ...Object.fromEntries(names.map((name) => [name, columns[name][row]])) };
  const places = columns.line[row] > 0 ? [[columns.file[row], columns.line[row]], ...(columns.inlined[row] || [])] : [];
  const chain = places.flatMap((place, index) => [index ? " inlined at " : "Line ", jump(...place)]);
  const loops = chainOf(columns.loop[row]).flatMap((loop, index) => [index ? " in " : "In loop ", link(numberedLoop(view.loops.get(loop)), () => choose({ loop }))]);
  const more = [chain, loops].filter((parts) => parts.length).map((parts) => element("p", {}, ...parts));
  return { title: `${rowName(row)} ${text(columns.text[row])}`, entry, rows: [row], more };
}

function factsOf(entry) {
  if (!entry) return element("p", { class: "muted" }, "Nothing was counted here.");
  const shares = PAGE.measures.map((measure, index) => [formatPercent(entry.shares[index]), measure.said, known(entry.shares[index]) && measuresOf(view.launch).includes(measure)]);
  const counts = [
    [formatValue(entry.work, view.launch.work_unit, 3), "work", entry.work > 0],
    [formatValue(entry.work_int32, "op", 3), "integer work", entry.work_int32 > 0],
    [formatValue(entry.requested, "byte", 3), "of global memory requested from L1", entry.requested > 0],
    [formatValue(entry.local, "byte", 3), "of local memory requested from L1", entry.local > 0],
    [formatValue(entry.intensity, view.launch.chart.axes[1], 3), "at L1", entry.intensity > 0],
    [formatValue(entry.executed, "count", 3), countedName(), known(entry.executed)],
    [plainNumber(entry.lanes), "lanes of 32", known(entry.lanes)],
  ];
  const shown = [...shares, ...counts].filter(([, , there]) => there);
  return element("p", { class: "facts" }, ...shown.map(([value, label]) => element("span", {}, element("b", {}, value), ` ${label}`)));
}

/** Where samples found warps that were at some instructions. */
function stallsOf(rows) {
  const sums = [...sumsBy([...rows].flatMap((row) => view.stalls.get(row) || []), ([reason]) => reason, ([, samples]) => samples)];
  const total = sums.reduce((sum, [, samples]) => sum + samples, 0);
  if (!total) return [];
  const lines = sums.slice(0, MOST_STALLS).map(([reason, samples]) => element(
    "tr", {}, element("th", { scope: "row" }, stallName(reason)), cell(heatBar({ own: samples / total, within: null }, 1)), cell(shareText(samples / total), "num"),
  ));
  return [element("h3", {}, "Where samples found the warps"), element("table", { class: "stalls" }, element("tbody", {}, ...lines))];
}
