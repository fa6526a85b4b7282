/* Start: wire the events, draw once. */

function update(size = chartSize()) {
  drawChart(size);
  drawKey(current.selection);
  drawPrecisions();
  drawLevels();
  drawChoices();
  drawRoofs(current.roofs);
  drawTop();
  drawQuery();
  drawTable(current.selection.rows);
  drawDetails();
  drawStatus(current.selection);
  filterUsage();
}

/** Of the kernels without dots the rows of the chosen GPU alone; the section goes where it has none. */
function filterUsage() {
  const rows = [...document.querySelectorAll("#usage tr[data-device]")];
  if (!rows.length || DEVICES.length < 2) return;
  for (const row of rows) row.hidden = row.nextElementSibling.hidden = row.dataset.device !== state.device;
  byId("usage").hidden = rows.every((row) => row.hidden);
}

const sheets = []; // of the other GPUs, while printing

/** Draw everything anew; on paper in sizes that fit, with a sheet for each GPU. */
function redraw(paper) {
  unpinTip();
  for (const sheet of sheets.splice(0)) sheet.remove();
  for (const part of document.querySelectorAll("#answer details")) part.classList.toggle("no-print", paper && Boolean(current) && DEVICES.includes(part.dataset.device) && part.dataset.device !== state.device);
  if (!current) return;
  const mine = state;
  for (const device of paper ? DEVICES.filter((name) => name !== mine.device) : []) {
    state = { ...mine, ...onGpu(device) };
    update({ width: 700, height: 400 });
    sheets.push(sheetOf(device));
  }
  state = mine;
  update(paper ? { width: 700, height: 400 } : undefined);
  (byId("usage") || byId("app")).after(...sheets);
}

/** What is drawn now, and what is said of its GPU, as copies. */
function sheetOf(device) {
  const copy = (part) => part.cloneNode(true);
  const said = [...document.querySelectorAll("#answer details")].filter((part) => part.dataset.device === device).map(copy);
  for (const part of said) part.classList.remove("no-print");
  const dotted = ORDER.some(onStage) ? [document.querySelector(".stage"), byId("table")] : [];
  const parts = [...dotted, byId("usage")].filter((part) => part && !part.hidden).map(copy);
  return element("div", { class: "sheet" }, element("section", { class: "card answer" }, ...(said.length ? said : [element("h2", {}, device)])), ...parts);
}

/** Isolate a kernel; the same one again, or null, restores all. */
function isolate(owner) {
  change(() => { state.isolated = state.isolated === owner ? null : owner; });
  scrollToChosen();
}

/** A kernel alone, also one of another GPU or one that the filters leave out. */
function showAlone(kernel) {
  if (!current.selection.kernels.includes(kernel)) state = { ...freshState(), theme: state.theme, ...onGpu(kernel.device) };
  isolate(kernel.index);
}

/** The point that a mark of the chart stands for, where it is one, and what makes its texts: a short one, everything. */
function toldBy({ data: { meta }, customdata }) {
  if (meta === "roof") return { tells: Array(2).fill(() => roofTip(current.roofs.find((roof) => roof.key === customdata))) };
  if (meta === "ridge") return { tells: Array(2).fill(() => ridgeTip(ridges(current.shown)[customdata])) };
  return ["dots", "edge"].includes(meta) ? { point: POINTS[customdata], tells: [pointTip, pointFacts] } : {};
}

/** Mark a dot, or with null none, in chart and table. */
function show(point) {
  highlight(point && point.owner, point && point.precision);
  markRows(point && point.owner);
}

function onHover({ points: [mark], event }) {
  const { point, tells } = toldBy(mark);
  if (point) show(point);
  if (tells) showTip(tells[0](point), event.clientX, event.clientY);
}

function onClick({ points: [mark], event }) {
  const { point, tells } = toldBy(mark);
  const texts = tells && tells[1](point); // of what is drawn before the click changes it
  if (point) isolate(point.owner);
  if (texts && !(point && state.isolated === null)) pinTip(texts, event.clientX, event.clientY);
}

/** The dots with the keyboard: arrow keys go from one to the next, those of the first kernel first. */
function onChartKey(event) {
  const dots = current.selection.points.filter((point) => state.isolated === null || point.owner === state.isolated);
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  if (event.target !== chart || !dots.length || (!step && event.key !== "Enter")) return;
  const at = dots.findIndex((point) => point.index === Number(chart.dataset.dot));
  const dot = dots[step ? (at + step + dots.length) % dots.length : Math.max(at, 0)];
  chart.dataset.dot = dot.index;
  const { l, t } = margins(current.size.width);
  const { left, top } = chart.getBoundingClientRect();
  const [x, y] = pixelOf(dot, current.projection);
  event.preventDefault();
  if (!step) return pinTip(pointFacts(dot), left + l + x, top + t + y);
  unpinTip();
  show(dot);
  return showTip(pointTip(dot), left + l + x, top + t + y);
}

function onLeave() {
  hideTip();
  show(null);
}

function onRelayout(change) {
  const ranges = ["xaxis", "yaxis"].map((name) => chart.layout[name].range.map(Number));
  if (!Object.keys(change).some((key) => /^[xy]axis\.range/.test(key))) return;
  state.view = { x: ranges[0], y: ranges[1] };
  onLeave();
  moveLabels();
  drawStatus(current.selection);
  writeLink(choices(), true);
}

function wireChart() {
  chart.on("plotly_hover", onHover);
  chart.on("plotly_unhover", onLeave);
  chart.on("plotly_click", onClick);
  chart.addEventListener("keydown", onChartKey);
  chart.addEventListener("blur", onLeave);
  document.addEventListener("pointerdown", (event) => { if (!tooltip.contains(event.target)) unpinTip(); });
  chart.on("plotly_relayout", onRelayout);
  chart.on("plotly_doubleclick", () => change(() => { state.view = null; }));
  let size = chartSize();
  new ResizeObserver(() => {
    const next = chartSize();
    if (next.width === size.width && next.height === size.height) return;
    size = next;
    drawChart();
  }).observe(chart.parentElement);
  addEventListener("scroll", hideTip, { passive: true });
}

function wireTable() {
  wireRows((row) => isolate(ROWS[row].kernel.index));
  const table = byId("table");
  const follow = (event) => {
    const line = event.target.closest("#table tbody tr");
    const row = line && ROWS[Number(line.dataset.row)];
    highlight(row ? row.kernel.index : null, row ? row.precision : null);
  };
  for (const enter of ["mouseover", "focusin"]) table.addEventListener(enter, follow);
  for (const leave of ["mouseleave", "focusout"]) table.addEventListener(leave, () => highlight(null));
}

function wireControls() {
  wireQuery();
  byId("regex").addEventListener("click", () => change(() => { state.regex = !state.regex; state.offered = false; }));
  byId("top").addEventListener("change", (event) => change(() => { state.top = Number(event.target.value); }));
  byId("reset").addEventListener("click", unpinTip);
  wireMenu({ rows: () => sorted(current.selection.rows), picture });
  wireSentences(ORDER, ({ kernel }) => kernel, ({ device }) => device, showAlone);
  byId("details").addEventListener("click", (event) => { if (event.target.id === "restore") isolate(null); });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    unpinTip();
    if (state.isolated !== null) isolate(null);
  });
}

function wire() {
  const wide = matchMedia("(min-width: 901px)").matches;
  for (const id of ["roof-panel", "controls"]) byId(id).open = wide;
  wireChart();
  wireTable();
  wireControls();
}

startPage(POINTS.length > 0, redraw, wire);
