/* Kernels without dots: how full SMs and memory levels were, as bars in percent of their peaks. */

const BAR = 10; // pixels of a bar

function usageBox() {
  return document.getElementById("usage-chart");
}

function usageLayout(width, colours) {
  const { rows, units, reached, time } = PAGE.usage;
  const narrow = width < 700;
  const base = { family: FONT, color: colours.text };
  const verdicts = rows.map((row, index) => ({
    xref: "paper", x: 1, xanchor: "left", xshift: 46, y: index, yref: "y", showarrow: false, text: plotlyText(shorten(row.verdict, 30)),
    font: { ...base, size: 12 }, align: "left",
  }));
  return {
    width, height: 84 + rows.length * Math.max(30, units.length * BAR + 12), autosize: false, barmode: "group", bargap: 0.22, bargroupgap: 0.05,
    margin: { l: narrow ? 130 : 250, r: narrow ? 46 : 250, t: 34, b: 46, pad: 4 }, paper_bgcolor: colours.card, plot_bgcolor: colours.card,
    font: { ...base, size: 12 }, showlegend: !time, legend: { orientation: "h", x: 0, y: 1, yanchor: "bottom", traceorder: "normal" },
    xaxis: { range: [0, 100], dtick: 20, fixedrange: true, gridcolor: colours.grid, linecolor: colours.line, color: colours.muted, zeroline: false,
      title: { text: time ? "% of the time" : "% of peak", font: { size: 13 }, standoff: 8 } },
    yaxis: { range: [rows.length - 0.5, -0.5], fixedrange: true, tickvals: rows.map((_, index) => index), color: colours.text, showgrid: false, zeroline: false,
      ticktext: rows.map((row) => plotlyText(shorten(row.kernel, narrow ? 16 : 34))) },
    shapes: time ? [] : [{ type: "line", x0: 100 * reached, x1: 100 * reached, y0: 0, y1: 1, yref: "paper", line: { color: colours.muted, width: 1, dash: "dash" } }],
    annotations: narrow ? [] : verdicts, hovermode: "closest",
  };
}

/** One trace per unit; the value stands at the longest bar of each kernel. */
function usageTraces(colours) {
  const { rows, units } = PAGE.usage;
  const theme = document.documentElement.dataset.theme === "dark" ? "dark" : "light";
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
  const wide = width || Math.max(280, Math.floor(box.parentElement.clientWidth - 32));
  return Plotly.react(box, usageTraces(colours), usageLayout(wide, colours), { displayModeBar: false, responsive: false, typesetMath: false, showTips: false, plotlyServerURL: "" });
}

function wireUsage() {
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
