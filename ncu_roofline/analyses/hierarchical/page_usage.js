/* Kernels without dots: how full SMs and memory levels were, as bars in percent of their peaks. */

const BAR = 10; // pixels of a bar

function usageBox() {
  return byId("usage-chart");
}

/** The bars of the chosen GPU; on paper no more than fit on a page: the table below has all. */
function usageRows(paper = false) {
  const rows = POINTS.length ? PAGE.usage.rows.filter((row) => row.device === state.device) : PAGE.usage.rows;
  return paper ? rows.slice(0, Math.max(4, Math.floor(700 / barHeight()))) : rows;
}

function barHeight() {
  return Math.max(30, PAGE.usage.units.length * BAR + 12);
}

function usageLayout(rows, width, colours) {
  const { units, reached, time } = PAGE.usage;
  const narrow = width < 700;
  const base = { family: FONT, color: colours.text };
  const names = shortenApart(rows.map((row) => row.kernel), narrow ? 16 : 34);
  const verdicts = rows.map((row, index) => ({
    xref: "paper", x: 1, xanchor: "left", xshift: 46, y: index, yref: "y", showarrow: false, text: plotlyText(shorten(row.verdict, 30)),
    font: { ...base, size: 12 }, align: "left",
  }));
  return {
    width, height: 84 + rows.length * barHeight(), autosize: false, barmode: "group", bargap: 0.22, bargroupgap: 0.05,
    margin: { l: narrow ? 130 : 250, r: narrow ? 46 : 250, t: 34, b: 46, pad: 4 }, paper_bgcolor: colours.card, plot_bgcolor: colours.card,
    font: { ...base, size: 12 }, showlegend: !time, legend: { orientation: "h", x: 0, y: 1, yanchor: "bottom", traceorder: "normal" },
    xaxis: { range: [0, 100], dtick: 20, fixedrange: true, gridcolor: colours.grid, linecolor: colours.line, color: colours.muted, zeroline: false,
      title: { text: time ? "% of the time" : "% of peak", font: { size: 13 }, standoff: 8 } },
    yaxis: { range: [rows.length - 0.5, -0.5], fixedrange: true, tickvals: rows.map((_, index) => index), color: colours.text, showgrid: false, zeroline: false,
      ticktext: rows.map((row) => plotlyText(names.get(row.kernel))) },
    shapes: time ? [] : [{ type: "line", x0: 100 * reached, x1: 100 * reached, y0: 0, y1: 1, yref: "paper", line: { color: colours.muted, width: 1, dash: "dash" } }],
    annotations: narrow ? [] : verdicts, hovermode: "closest",
  };
}

/** One trace per unit; the value stands at the longest bar of each kernel. */
function usageTraces(rows, colours) {
  const { units } = PAGE.usage;
  const theme = isDark() ? "dark" : "light";
  const longest = rows.map((row) => row.shares.indexOf(Math.max(...row.shares.filter(known))));
  return units.map((unit, place) => ({
    type: "bar", orientation: "h", name: unit.label, y: rows.map((_, index) => index), x: rows.map((row) => (known(row.shares[place]) ? Math.min(100, 100 * row.shares[place]) : null)),
    marker: { color: unit[theme] }, text: rows.map((row, index) => (longest[index] === place ? formatPercent(row.shares[place]) : "")), textposition: "outside",
    cliponaxis: false, textfont: { size: 11, color: colours.text }, hoverinfo: "text",
    hovertext: rows.map((row) => plotlyText(`${shorten(row.kernel, 60)}, ${formatValue(row.time, "second")}: ${unit.label} ${row.texts[place]}`)),
  }));
}

function drawUsage(width = 0) {
  const box = usageBox();
  if (!box || !PAGE.usage.rows.length) return null;
  const colours = palette();
  const rows = usageRows(width > 0);
  box.hidden = !rows.length;
  const wide = width || Math.max(280, Math.floor(box.parentElement.clientWidth - 32));
  return Plotly.react(box, usageTraces(rows, colours), usageLayout(rows, wide, colours), { displayModeBar: false, responsive: false, typesetMath: false, showTips: false, plotlyServerURL: "" });
}

/** Bars and rows of the chosen GPU alone; the section goes where it has none. */
function filterUsage() {
  const section = byId("usage");
  if (!section || DEVICES.length < 2) return;
  const rows = [...section.querySelectorAll("tr[data-device]")];
  for (const row of rows) {
    row.hidden = row.dataset.device !== state.device;
    if (row.nextElementSibling?.classList.contains("why")) row.nextElementSibling.hidden = row.hidden;
  }
  section.hidden = rows.every((row) => row.hidden);
  if (section.dataset.device !== state.device && !section.hidden) drawUsage();
  section.dataset.device = state.device;
}

/** Each cell with its header, for a phone. */
function labelCells() {
  const headers = [...document.querySelectorAll("#usage thead th")].map((cell) => cell.textContent);
  for (const row of document.querySelectorAll("#usage tr[data-device]")) {
    for (const [index, cell] of [...row.cells].entries()) cell.dataset.label = headers[index];
  }
}

function wireUsage() {
  labelCells();
  const box = usageBox();
  if (!box || !PAGE.usage.rows.length) return;
  drawUsage();
  let before = box.parentElement.clientWidth;
  new ResizeObserver(() => {
    if (box.parentElement.clientWidth === before) return;
    before = box.parentElement.clientWidth;
    drawUsage();
  }).observe(box.parentElement);
}
