/* Start: wire the events, draw once. */

const CONFIG = {
  displaylogo: false, responsive: true, typesetMath: false, showTips: false, plotlyServerURL: "",
  modeBarButtons: [["toImage"], ["zoom2d", "pan2d"], ["zoomIn2d", "zoomOut2d", "resetScale2d"]], toImageButtonOptions: { format: "svg", filename: "time-roofline" },
};
const MOST_NAMES = 14;
const MAKERS = { complexity: complexityChart, time: timeChart, both: bothChart };

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
  const [points, colours] = [shownPoints(), palette()];
  for (const id of CHARTS) {
    const made = MAKERS[id](points, colours);
    views[id] = made.range;
    if (paper) [made.layout.width, made.layout.height, made.layout.autosize] = [...paper[id], false];
    Plotly.react(document.getElementById(id), made.traces, made.layout, CONFIG);
  }
  drawTable(points);
  drawDetails();
  drawChoices();
  const query = document.getElementById("query");
  if (query.value !== state.query) query.value = state.query;
  drawKey(points);
  drawStatus(points);
}

function picker(label, values, value, pick) {
  const options = values.map(([id, text]) => element("option", { value: id, selected: id === value }, shorten(text, 60)));
  return element("label", {}, `${label} `, element("select", { "data-pick": label, onchange: (event) => change(() => pick(event.target.value)) }, ...options));
}

/** Choices that only some reports offer: GPU, precision of the 4D chart. */
function drawChoices() {
  const parts = [];
  if (DEVICES.length > 1) {
    parts.push(picker("GPU", DEVICES.map((name) => [name, name || "unknown"]), state.device, (device) => Object.assign(state, { device, precision: "", chosen: null })));
  }
  const all = machines().filter((one) => positive(one.peak, one.bandwidth));
  if (all.length > 1) {
    const pick = (precision) => Object.assign(state, { precision });
    parts.push(picker("Complexity and time of", all.map((one) => [one.precision, PAGE.precisions[one.precision]]), scaledBy().precision, pick));
  }
  const group = document.getElementById("choices");
  group.hidden = !parts.length;
  const focused = document.activeElement?.dataset?.pick;
  group.replaceChildren(...parts);
  if (focused) [...group.querySelectorAll("select")].find((node) => node.dataset.pick === focused)?.focus();
  const scale = scaledBy();
  document.getElementById("both-title").textContent = scale ? `Complexity and time, ${PAGE.precisions[scale.precision]}` : "Complexity and time";
}

function drawKey(points) {
  const bounds = Object.keys(PAGE.bounds).filter((bound) => points.some((point) => point.bound === bound));
  const parts = bounds.map((bound) => element("span", { colour: boundColour(bound) }, element("i"), PAGE.bounds[bound][0]));
  const fixed = ["filled: operations and traffic", "open: compute and bandwidth time (right and upper axes)", "dotted: inefficiency", `thick line: machine balance; numbers: ${workUnit(points)}/B`];
  document.getElementById("key").replaceChildren(...parts, ...fixed.map((text) => element("span", {}, text)));
  const names = [...SHAPE_OF.keys()].filter((name) => points.some((point) => point.name === name));
  const few = names.slice(0, MOST_NAMES).map((name) => element("span", {}, shapeIcon(SHAPE_OF.get(name) % SHAPES.length), shorten(name, 40)));
  const rest = names.length > MOST_NAMES ? [element("span", {}, `and ${names.length - MOST_NAMES} more`)] : [];
  document.getElementById("names").replaceChildren(...few, ...rest);
}

function drawStatus(points) {
  const seconds = points.reduce((sum, point) => sum + (point.seconds || 0), 0);
  const parts = [`${points.length} of ${counted(POINTS.length, "symbol")}, ${formatValue(seconds, "second", 3)}`];
  const bound = points.filter((point) => point.bound === "overhead").length;
  if (bound) parts.push(`${bound} bound by launch overhead`);
  if (state.chosen !== null) parts.push("one symbol chosen: Esc shows all");
  document.getElementById("status").textContent = parts.join(" \u00b7 ");
}

function choose(index) {
  change(() => { state.chosen = state.chosen === index ? null : index; });
}

/** After a zoom of the 4D chart its second axes show the same stretch. */
function followZoom(event) {
  const scale = scaledBy();
  if (!scale || !Object.keys(event).some((key) => /^[xy]axis\.(range|autorange)/.test(key))) return;
  const { layout } = document.getElementById("both");
  const shifted = (axis, by) => axis.range.map((at) => Number(at) - Math.log10(by));
  Plotly.relayout("both", { "xaxis2.range": shifted(layout.xaxis, scale.bandwidth), "yaxis2.range": shifted(layout.yaxis, scale.peak) });
}

function wireCharts() {
  for (const id of CHARTS) {
    document.getElementById(id).on("plotly_click", ({ points: [hit] }) => { if (["symbols", "open"].includes(hit.data.meta)) choose(hit.customdata); });
  }
  document.getElementById("both").on("plotly_relayout", followZoom);
}

function wireTable() {
  const table = document.getElementById("table");
  table.addEventListener("click", (event) => {
    const header = event.target.closest("[data-sort]");
    if (header) return sortBy(header.dataset.sort);
    const row = event.target.closest("tbody tr");
    return row && choose(Number(row.dataset.row));
  });
  table.addEventListener("keydown", (event) => {
    const row = event.target.closest("tbody tr");
    if (!row || !["Enter", " "].includes(event.key)) return;
    event.preventDefault();
    choose(Number(row.dataset.row));
    document.querySelector(`#table tr[data-row="${row.dataset.row}"]`)?.focus({ preventScroll: true });
  });
  document.getElementById("show-more").addEventListener("click", () => change(() => { state.rows += MORE_ROWS; }));
  document.getElementById("save").addEventListener("click", saveTable);
}

function sortBy(column) {
  const same = state.sort.column === column;
  state.sort = { column, descending: same ? !state.sort.descending : !isText(column) };
  drawTable(shownPoints());
  writeLink(choices());
  document.querySelector(`[data-sort="${column}"]`).focus({ preventScroll: true });
}

function wireControls() {
  document.getElementById("query").addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(() => change(() => {}, true), TYPING);
  });
  document.getElementById("reset").addEventListener("click", () => {
    change(() => { state = { ...freshState(), theme: state.theme }; });
  });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape" && state.chosen !== null) choose(state.chosen); });
}

function redraw() {
  if (POINTS.length) update();
}

function wireTheme() {
  applyTheme();
  followTheme(redraw);
}

/** Take the choices of an address. */
function restore(link) {
  stopTyping();
  state = stateOf(link);
  applyTheme();
  redraw();
}

function wirePrinting() {
  const print = (on) => {
    paper = on ? { complexity: [340, 300], time: [340, 300], both: [700, 440] } : null;
    if (on) setTheme("light");
    else applyTheme();
    redraw();
  };
  addEventListener("beforeprint", () => print(true));
  addEventListener("afterprint", () => print(false));
  matchMedia("print").addEventListener("change", ({ matches }) => print(matches));
}

state = stateOf(readLink() || new URLSearchParams());
wireTheme();
if (POINTS.length) {
  document.getElementById("app").hidden = false;
  update();
  writeLink(choices());
  followLink(restore);
  wireCharts();
  wireTable();
  wireControls();
  wirePrinting();
} else {
  document.getElementById("reset").disabled = true;
}
