/* Start: wire the events, draw once. */

/** Change the state, then draw everything from it. */
function change(action) {
  action();
  update();
}

function update() {
  drawChart();
  drawPrecisions();
  drawLevels();
  drawChoices();
  drawRoofs(current.roofs);
  drawQuery();
  drawTable(current.selection.rows);
  drawDetails();
  drawStatus(current.selection);
}

/** Draw everything anew, in the colours of the theme. */
function redraw() {
  if (current) update();
  drawUsage();
}

/** Isolate a kernel; the same one again, or null, restores all. */
function isolate(owner) {
  change(() => { state.isolated = state.isolated === owner ? null : owner; });
  scrollToChosen();
}

function reset() {
  state = freshState();
  drawTop();
  update();
}

function onHover(event) {
  const [hit] = event.points;
  const [x, y] = [event.event.clientX, event.event.clientY];
  if (hit.data.meta === "dots") {
    const point = POINTS[hit.customdata];
    highlight(point.owner, point.precision);
    markRows(point.owner);
    showTip(pointTip(point), x, y);
  } else if (hit.data.meta === "roof") {
    showTip(roofTip(current.roofs.find((roof) => roof.key === hit.customdata)), x, y);
  } else if (hit.data.meta === "ridge") {
    showTip(ridgeTip(ridges(current.roofs)[hit.customdata]), x, y);
  }
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
}

function wireChart() {
  chart.on("plotly_hover", onHover);
  chart.on("plotly_unhover", onLeave);
  chart.on("plotly_click", ({ points: [hit] }) => { if (hit.data.meta === "dots") isolate(POINTS[hit.customdata].owner); });
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
  document.getElementById("show-all").addEventListener("click", () => change(() => { state.allRows = true; }));
}

function wireControls() {
  let timer = 0;
  document.getElementById("query").addEventListener("input", (event) => {
    clearTimeout(timer);
    timer = setTimeout(() => change(() => { state.query = event.target.value; }), 120);
  });
  document.getElementById("regex").addEventListener("click", () => change(() => { state.regex = !state.regex; }));
  document.getElementById("top").addEventListener("change", (event) => change(() => { state.top = Number(event.target.value); }));
  document.getElementById("reset").addEventListener("click", reset);
  document.getElementById("download").addEventListener("click", downloadSvg);
  document.getElementById("details").addEventListener("click", (event) => { if (event.target.id === "restore") isolate(null); });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape" && state.isolated !== null) isolate(null); });
}

function wirePrinting() {
  let theme = "";
  addEventListener("beforeprint", () => {
    theme = document.documentElement.dataset.theme;
    setTheme("light");
    if (current) drawChart({ width: 700, height: 420 });
    drawUsage(700);
  });
  addEventListener("afterprint", () => {
    setTheme(theme);
    if (current) drawChart();
    drawUsage();
  });
}

function start() {
  startTheme();
  document.getElementById("theme").addEventListener("click", () => {
    setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
    redraw();
  });
  for (const button of document.querySelectorAll(".copy")) button.addEventListener("click", () => copyCommand(button));
  wireUsage();
  wirePrinting();
  if (!POINTS.length && (!ROOFS.length || PAGE.usage.rows.length)) return;
  document.getElementById("app").hidden = false;
  for (const id of ["table", "controls"]) document.getElementById(id).hidden = !POINTS.length;
  document.getElementById("download").disabled = false;
  document.getElementById("roof-panel").open = matchMedia("(min-width: 901px)").matches;
  drawTop();
  update();
  wireChart();
  wireTable();
  wireControls();
}

start();
