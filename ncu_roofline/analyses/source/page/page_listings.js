/* The two listings: source lines, and instructions with the loops around them. */

const PAPER_ROWS = 40; // on paper: the hottest
const source = new Rows(byId("source-pane"), sourceMark);
const code = new Rows(byId("instruction-pane"), codeMark);
let marked = { rows: new Set(), lines: new Set() };
let paper = false;
const WAITING = "why warps were waiting here most often";
const largest = { line: 1, row: 1 };

/** What the heat bars show. */
function measureNow() {
  return PAGE.measures.find((measure) => measure.id === state.by);
}

/** Whether anything is known of a column of the lines or instructions: others take no room. */
function knows(table, name) {
  const some = (value) => (name === "stall" ? Boolean(text(value)) : known(value) && value !== 0);
  view.knows[`${table}.${name}`] ??= table === "lines" ? view.launch.lines.some((line) => some(line[name])) : view.instructions[name].some(some);
  return view.knows[`${table}.${name}`];
}

/* Source: columns as their header and what makes a cell; what nothing is known of takes no room. */

function sourceColumns() {
  const heat = (row) => (row.entry ? heatOf(row.entry) : { own: null, within: null });
  const hint = ({ own, within }) => (within > 0 ? `here ${formatPercent(own || 0)}, in code inlined here ${formatPercent(within)}` : "");
  const bare = (row) => (row.entry && !PAGE.files[row.file].parts.length ? counted(row.entry.instructions || 0, "instruction") : "");
  const intensity = (row) => (row.entry?.intensity > 0 ? plainNumber(row.entry.intensity) : "");
  return [
    [heading("Line", "", "num"), (row) => element("th", { scope: "row", class: "num" }, String(row.line))],
    [heading("", "", "bar-head"), (row) => cell(heatBar(heat(row), largest.line), "", hint(heat(row)))],
    [measureHeading(measureNow()), (row) => cell(shareText(heat(row).own > 0 ? heat(row).own : heat(row).within), `num${heat(row).own > 0 ? "" : " pale"}`)],
    knows("lines", "intensity") && [heading(intensityHeading(), "operations per byte requested from L1, of global and local memory", "num rarer"), (row) => cell(intensity(row), "num rarer")],
    knows("lines", "stall") && [heading("Stall", WAITING, "stall"), (row) => stallCell(row.entry?.stall, row.entry?.share_stall)],
    [heading("Source"), (row) => cell(bare(row) || row.words, bare(row) ? "muted rest" : "words")],
  ].filter(Boolean);
}

/** The lines of a file that are shown: those of its text, or those with counts where it has none; gaps are rows as well. */
function sourceRows(file) {
  const { parts } = PAGE.files[file];
  const entry = (line) => view.lines.get(keyOf(file, line)) || null;
  const known = parts.flatMap(([first, texts]) => texts.map((words, index) => ({ file, line: first + index, words, entry: entry(first + index) })));
  const there = new Set(known.map((row) => row.line));
  const bare = [...view.lines.values()].filter((line) => line.file === file && line.line > 0 && !there.has(line.line)).map((line) => ({ file, line: line.line, words: "", entry: line }));
  const rows = withGaps([...known, ...bare].sort((a, b) => a.line - b.line), (a, b) => b.line === a.line + 1, bare.length && !known.length);
  return paper ? forPaper(rows, (row) => row.entry && heatSum(row.entry), (a, b) => b.line === a.line + 1) : rows;
}

function heatSum(entry) {
  const { own, within } = heatOf(entry);
  return (own || 0) + (within || 0);
}

function withGaps(rows, next, never) {
  return never ? rows : rows.flatMap((row, index) => (index && !next(rows[index - 1], row) ? [{ gap: true }, row] : [row]));
}

/** The hottest rows with their neighbours, in order. */
function forPaper(rows, heat, next) {
  const hot = rows.map((row, index) => [row.gap ? 0 : heat(row) || 0, index]).filter(([share]) => share > 0).sort((a, b) => b[0] - a[0]).slice(0, PAPER_ROWS);
  const kept = new Set(hot.flatMap(([, index]) => [index - 1, index, index + 1]));
  return withGaps(rows.filter((row, index) => kept.has(index) && !row.gap), next);
}

function stallCell(stall, share) {
  return cell(stall === undefined ? "" : stallName(stall), "stall", known(share) ? `${formatPercent(share)} of the samples here` : "");
}

function stallName(place) {
  return text(place).replace(/_/g, " ");
}

function sourceMark(row) {
  if (row.gap) return "gap";
  const { chosen } = state;
  const key = keyOf(row.file, row.line);
  const here = chosen && chosen.file === row.file && chosen.line === row.line;
  return [marked.lines.has(key) ? "lit" : "", here ? "chosen" : "", row.entry ? "counted" : "plain"].filter(Boolean).join(" ");
}

/* Instructions */

function codeColumns() {
  const { offset, executed, lanes, stall, share_stall: share, text: texts, address } = view.instructions;
  const threads = view.launch.counted === "threads";
  return [
    [heading("Offset"), ({ row }) => element("th", { scope: "row", class: "num" }, offset[row] < 0 ? "" : offset[row].toString(16).padStart(4, "0"))],
    [heading("Loops", "a bracket is a loop, the innermost to the right"), ({ row }) => element("td", { class: "brackets" }, ...brackets(row))],
    [heading("", "", "bar-head"), ({ row }) => cell(heatBar({ own: shareOfRow(row), within: null }, largest.row))],
    [measureHeading(measureNow()), ({ row }) => cell(shareText(shareOfRow(row)), "num")],
    [heading(threads ? "Threads" : "Executed", `${countedName()} executed`, "num rarer"), ({ row }) => cell(formatValue(executed[row], "count", 3), "num rarer")],
    knows("instructions", "lanes") && [heading("Lanes", "threads active per warp instruction, of 32", "num rarer"), ({ row }) => cell(plainNumber(lanes[row]), "num rarer")],
    knows("instructions", "stall") && [heading("Stall", WAITING, "stall"), ({ row }) => stallCell(stall[row], share[row])],
    state.file !== null && [heading("Line"), ({ row }) => placeCell(row)],
    [heading("Instruction"), ({ row }) => cell(text(texts[row]) || `at 0x${address[row]}`, "words")],
  ].filter(Boolean);
}

/** The line of an instruction, without the file that is shown; an arrow where it is inlined. */
function placeCell(row) {
  const { file, line, inlined } = view.instructions;
  const name = line[row] > 0 ? lineName(file[row], line[row]) : "";
  return cell((name && file[row] === state.file ? String(line[row]) : shorten(name, 19)) + (inlined[row] ? " \u2199" : ""), "place", name);
}

function codeRows() {
  const { function: functions, offset } = view.instructions;
  const rows = Array.from({ length: view.count }, (_, row) => ({ row }));
  const next = (a, b) => functions[a.row] === functions[b.row] && (offset[b.row] < 0 || offset[b.row] === offset[a.row] + 16);
  let shown = rows;
  if (paper) shown = marked.rows.size ? rows.filter(({ row }) => marked.rows.has(row)).slice(0, 5 * PAPER_ROWS) : forPaper(rows, ({ row }) => shareOfRow(row), next);
  shown = shown.filter((one) => !one.gap);
  return shown.flatMap((one, index) => {
    const before = shown[index - 1];
    if (!before || functions[before.row] !== functions[one.row]) return [{ head: functionName(functions[one.row]) }, one];
    return next(before, one) ? [one] : [{ gap: true }, one];
  });
}

function functionName(place) {
  const found = view.launch.functions.find((one) => one.function === place);
  if (!text(place)) return OUTSIDE;
  return found ? `${found.name} (${found.role})` : text(place);
}

/** A stroke for each loop around an instruction, outermost first, closed above and below. */
function brackets(row) {
  const { function: functions, loop: loops } = view.instructions;
  const inside = (other, loop) => functions[other] === functions[row] && chainOf(loops[other]).includes(loop);
  return [...chainOf(loops[row])].reverse().slice(0, 12).map((loop) => {
    const ends = [inside(row - 1, loop) ? "" : "first", inside(row + 1, loop) ? "" : "last"].join(" ");
    return element("span", { class: `bracket ${ends}`, "data-loop": loop, title: `loop ${numberedLoop(view.loops.get(loop))}` });
  });
}

function codeMark(one) {
  if (one.gap || one.head !== undefined) return "gap";
  const { chosen } = state;
  return [marked.rows.has(one.row) ? "lit" : "", chosen && chosen.row === one.row ? "chosen" : "", "counted"].filter(Boolean).join(" ");
}

/* Both */

function drawListings() {
  marked = lit();
  const heats = [...view.lines.values()].filter((line) => line.line > 0).map(heatSum);
  largest.line = heats.reduce((a, b) => Math.max(a, b), 0);
  largest.row = view.instructions.shares.length ? view.instructions.shares[PAGE.measures.findIndex((measure) => measure.id === state.by)].reduce((a, b) => Math.max(a, b || 0), 0) : 0;
  const lined = state.file !== null;
  byId("source").hidden = !lined;
  if (lined) source.show(sourceColumns(), sourceRows(state.file));
  byId("instructions").hidden = !view.count;
  if (view.count) code.show(codeColumns(), codeRows());
  document.querySelector(".right").classList.toggle("alone", !lined);
}

/** Mark what is chosen and bring it into sight, except in the pane in which it was chosen. */
function markListings(from) {
  marked = lit();
  if (state.file !== null) source.refresh();
  code.refresh();
  const row = state.chosen ? state.chosen.row ?? hottest(marked.rows) : hottest(Array.from({ length: view.count }, (_, index) => index));
  if (!state.chosen && from !== "start") return;
  if (from !== "code" && row !== null) code.reveal(code.rows.findIndex((one) => one.row === row));
  if (from !== "source" && state.file !== null) source.reveal(source.rows.findIndex((one) => one.line === lineToShow(row) && one.file === state.file));
}

/** The line of the file shown that goes with the choice: its own, or that of the hottest instruction. */
function lineToShow(row) {
  if (!state.chosen) return hottestLine();
  if (state.chosen.line > 0) return state.chosen.line;
  if (row === null) return null;
  const { file, line, inlined } = view.instructions;
  const place = [[file[row], line[row]], ...(inlined[row] || [])].find((one) => one[0] === state.file);
  return place ? place[1] : null;
}

function hottestLine() {
  const lines = [...view.lines.values()].filter((line) => line.file === state.file && line.line > 0);
  return lines.reduce((best, line) => (best === null || heatSum(line) > heatSum(best) ? line : best), null)?.line ?? null;
}
