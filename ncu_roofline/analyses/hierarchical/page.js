/* Start: wire the events, draw once. */

const TYPING = 120; // milliseconds of rest before a typed filter is drawn
let typing = 0; // the timer of a filter that is typed and not drawn yet

/** Change the state, then draw everything from it; what is `typed` makes one step of the history. */
function change(action, typed = false) {
  if (typing) state.query = document.getElementById("query").value;
  stopTyping();
  action();
  update();
  writeLink(choices(), typed);
}

function stopTyping() {
  clearTimeout(typing);
  typing = 0;
}

function update() {
  drawChart();
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

/** Draw everything anew, in the colours of the theme. */
function redraw() {
  if (current) update();
  drawUsage();
}

/** Take the choices of an address. */
function restore(link) {
  unpinTip();
  stopTyping();
  state = stateOf(link);
  applyTheme();
  redraw();
}

/** Isolate a kernel; the same one again, or null, restores all. */
function isolate(owner) {
  change(() => { state.isolated = state.isolated === owner ? null : owner; });
  scrollToChosen();
}

function reset() {
  unpinTip();
  change(() => { state = { ...freshState(), theme: state.theme }; });
}

/** What a mark of the chart says: [a short text, everything]; null for one that says nothing. */
function textsOf(mark) {
  const { meta } = mark.data;
  if (meta === "dots" || meta === "edge") return [pointTip, pointFacts].map((tell) => tell(POINTS[mark.customdata]));
  if (meta === "roof") return [0, 1].map(() => roofTip(current.roofs.find((roof) => roof.key === mark.customdata)));
  return meta === "ridge" ? [0, 1].map(() => ridgeTip(ridges(current.roofs)[mark.customdata])) : null;
}

function pointOf(mark) {
  return ["dots", "edge"].includes(mark.data.meta) ? POINTS[mark.customdata] : null;
}

function onHover({ points: [mark], event }) {
  const [texts, point] = [textsOf(mark), pointOf(mark)];
  if (point) {
    highlight(point.owner, point.precision);
    markRows(point.owner);
  }
  if (texts) showTip(texts[0], event.clientX, event.clientY);
}

function onClick({ points: [mark], event }) {
  const [texts, point] = [textsOf(mark), pointOf(mark)];
  if (point) isolate(point.owner);
  if (texts && !(point && state.isolated === null)) pinTip(texts[1], event.clientX, event.clientY);
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
  highlight(dot.owner, dot.precision);
  markRows(dot.owner);
  return showTip(pointTip(dot), left + l + x, top + t + y);
}

function onLeave() {
  hideTip();
  highlight(null);
  markRows(null);
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

function rowOf(target) {
  const line = target.closest("#table tbody tr");
  return line ? ROWS[Number(line.dataset.row)] : null;
}

function onTableKey(event) {
  const line = event.target.closest("tbody tr");
  if (!line) return;
  const moves = { ArrowDown: line.nextElementSibling, ArrowUp: line.previousElementSibling };
  if (event.key === "Enter" || event.key === " ") {
    const row = line.dataset.row;
    isolate(ROWS[Number(row)].kernel.index);
    document.querySelector(`#table tr[data-row="${row}"]`)?.focus({ preventScroll: true });
  } else if (moves[event.key]) {
    line.tabIndex = -1;
    moves[event.key].tabIndex = 0;
    moves[event.key].focus();
  } else return;
  event.preventDefault();
}

function sortBy(column) {
  const same = state.sort.column === column;
  const first = COLUMNS.find((each) => each.id === column).number;
  state.sort = { column, descending: same ? !state.sort.descending : first };
  drawTable(current.selection.rows);
  writeLink(choices());
  [...document.querySelectorAll("[data-sort]")].find((button) => button.dataset.sort === column).focus({ preventScroll: true });
}

function wireTable() {
  const table = document.getElementById("table");
  table.addEventListener("click", (event) => {
    const header = event.target.closest("[data-sort]");
    if (header) return sortBy(header.dataset.sort);
    const row = rowOf(event.target);
    return row && isolate(row.kernel.index);
  });
  const show = (event) => {
    const row = rowOf(event.target);
    highlight(row ? row.kernel.index : null, row ? row.precision : null);
  };
  table.addEventListener("mouseover", show);
  table.addEventListener("focusin", show);
  table.addEventListener("mouseleave", () => highlight(null));
  table.addEventListener("focusout", () => highlight(null));
  table.addEventListener("keydown", onTableKey);
  document.getElementById("show-more").addEventListener("click", () => change(() => { state.rows += MORE_ROWS; }));
  document.getElementById("save").addEventListener("click", saveTable);
}

function wireControls() {
  document.getElementById("query").addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(() => change(() => {}, true), TYPING);
  });
  document.getElementById("regex").addEventListener("click", () => change(() => { state.regex = !state.regex; state.offered = false; }));
  document.getElementById("top").addEventListener("change", (event) => change(() => { state.top = Number(event.target.value); }));
  document.getElementById("reset").addEventListener("click", reset);
  document.getElementById("download").addEventListener("click", downloadSvg);
  document.getElementById("details").addEventListener("click", (event) => { if (event.target.id === "restore") isolate(null); });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    unpinTip();
    if (state.isolated !== null) isolate(null);
  });
}

function wirePrinting() {
  let closed = null; // what was opened for the paper; null while nothing is printed
  const begin = () => {
    if (closed) return;
    closed = [...document.querySelectorAll("details:not([open])")].filter((each) => !each.closest(".no-print"));
    for (const each of closed) each.open = true;
    setTheme("light");
    if (current) drawChart({ width: 700, height: 400 });
    drawUsage(700);
  };
  const end = () => {
    for (const each of closed || []) each.open = false;
    closed = null;
    applyTheme();
    if (current) drawChart();
    drawUsage();
  };
  addEventListener("beforeprint", begin);
  addEventListener("afterprint", end);
  matchMedia("print").addEventListener("change", ({ matches }) => (matches ? begin() : end()));
}

function start() {
  state = stateOf(readLink() || new URLSearchParams());
  startTheme();
  document.getElementById("theme").addEventListener("click", () => {
    state.theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    applyTheme();
    redraw();
    writeLink(choices(), true);
  });
  for (const button of document.querySelectorAll(".copy")) button.addEventListener("click", () => copyCommand(button));
  wireUsage();
  wirePrinting();
  if (!POINTS.length) return;
  document.getElementById("app").hidden = false;
  document.getElementById("download").disabled = false;
  const wide = matchMedia("(min-width: 901px)").matches;
  for (const id of ["roof-panel", "controls"]) document.getElementById(id).open = wide;
  update();
  writeLink(choices());
  followLink(restore);
  wireChart();
  wireTable();
  wireControls();
}

start();
