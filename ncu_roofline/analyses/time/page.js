/* Start: wire the events, draw once. */

const MOST_NAMES = 14;
const MAKERS = { complexity: complexityChart, time: timeChart, both: bothChart };

function update() {
  const [points, colours] = [shownPoints(), palette()];
  for (const id of CHARTS) drawPlot(id, MAKERS[id](points, colours));
  drawRows(sortedRows(points), chosenRow);
  drawFacts(POINTS[state.chosen], ALL_COLUMNS.filter(({ id }) => id !== "kernel"), "symbols");
  drawChoices();
  showQuery();
  drawKey(points);
  drawStatus(points);
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
  const group = byId("choices");
  group.hidden = !parts.length;
  fill(group, parts);
  const scale = scaledBy();
  byId("both-title").textContent = scale ? `Complexity and time, ${PAGE.precisions[scale.precision]}` : "Complexity and time";
}

function drawKey(points) {
  const bounds = Object.keys(PAGE.bounds).filter((bound) => points.some((point) => point.bound === bound));
  const parts = bounds.map((bound) => element("span", { colour: boundColour(bound) }, element("i"), PAGE.bounds[bound][0]));
  const fixed = ["filled: operations and traffic", "open: compute and bandwidth time (right and upper axes)", "dotted: inefficiency", `thick line: machine balance; numbers: ${workUnit(points)}/B`];
  byId("key").replaceChildren(...parts, ...fixed.map((text) => element("span", {}, text)));
  const names = [...SHAPE_OF.keys()].filter((name) => points.some((point) => point.name === name));
  const few = names.slice(0, MOST_NAMES).map((name) => element("span", {}, shapeIcon(SHAPE_OF.get(name) % SHAPES.length), shorten(name, 40)));
  const rest = names.length > MOST_NAMES ? [element("span", {}, `and ${names.length - MOST_NAMES} more`)] : [];
  byId("names").replaceChildren(...few, ...rest);
}

function drawStatus(points) {
  const seconds = points.reduce((sum, point) => sum + (point.seconds || 0), 0);
  const parts = [`${points.length} of ${counted(POINTS.length, "symbol")}, ${formatValue(seconds, "second", 3)}`];
  const bound = points.filter((point) => point.bound === "overhead").length;
  if (bound) parts.push(`${bound} bound by launch overhead`);
  if (state.chosen !== null) parts.push("one symbol chosen: Esc shows all");
  byId("status").textContent = parts.join(" \u00b7 ");
}

/** After a zoom of the 4D chart its second axes show the same stretch. */
function followZoom(event) {
  const scale = scaledBy();
  if (!scale || !Object.keys(event).some((key) => /^[xy]axis\.(range|autorange)/.test(key))) return;
  const { layout } = byId("both");
  const shifted = (axis, by) => axis.range.map((at) => Number(at) - Math.log10(by));
  Plotly.relayout("both", { "xaxis2.range": shifted(layout.xaxis, scale.bandwidth), "yaxis2.range": shifted(layout.yaxis, scale.peak) });
}

/** Anew, on paper in sizes that fit; a page without symbols has no charts. */
function redraw(onPaper) {
  paper = onPaper ? { complexity: [340, 300], time: [340, 300], both: [700, 440] } : null;
  if (POINTS.length) update();
}

function wire() {
  wirePlots(CHARTS, ["symbols", "open"]);
  byId("both").on("plotly_relayout", followZoom);
  wireRows(toggleChosen);
  wireMenu({ rows: () => sortedRows(shownPoints()), saved: () => ALL_COLUMNS });
  wireSentences(POINTS, ({ name }) => name, ({ device }) => device, ({ device, index }) => { Object.assign(state, { device, query: "" }); toggleChosen(index); });
  wireQuery();
}

startPage(POINTS.length > 0, redraw, wire);
