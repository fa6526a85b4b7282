/* The dots: one trace per level; of very many that lie on top of each other only what can be seen. */

const MOST_DOTS = 1500; // elements that a browser redraws without a wait
const MOST_FADED = 500; // of those beside an isolated kernel

function placeOf(point) {
  return [point.intensity, point.performance];
}

function pixelOf(point, projection) {
  return projection.pixel(Math.log10(point.intensity), Math.log10(point.performance));
}

/** At most `most` of the points: of those in one cell of the plot that of the kernel that ranks first, in cells as large as it takes. */
function thinned(points, projection, most) {
  if (points.length <= most) return points;
  const order = [...LEVELS.keys()];
  const places = points.map((point) => [point, order.indexOf(point.level), ...pixelOf(point, projection)]);
  const inside = places.filter(([, , x, y]) => x >= 0 && y >= 0 && x <= projection.width && y <= projection.height);
  for (let cell = 1; ; cell *= 1.5) {
    const kept = new Map();
    for (const [point, level, x, y] of inside) {
      const key = level + order.length * (Math.floor(x / cell) + Math.floor(y / cell) * 1e5);
      if (!kept.has(key)) kept.set(key, point);
    }
    if (kept.size <= most) return [...kept.values()];
  }
}

/** The dots of one level; `faded` ones are those beside an isolated kernel. */
function levelTrace(level, points, crowd, faded, colours, legend) {
  const mine = points.filter((point) => point.level === level.id).reverse(); // those that rank first on top
  const size = crowd > 600 && (faded || state.isolated === null) ? 6 : crowd > 200 ? 8 : 10;
  const opacity = faded ? (crowd > 600 ? 0.06 : 0.15) : crowd > 600 && state.isolated === null ? 0.8 : 1;
  const marker = { size, opacity, ...paints(mine, levelColour(level.id), size, colours) };
  return symbols(mine.map(placeOf), { meta: "dots", customdata: mine.map((p) => p.index), showlegend: legend, name: plotlyText(level.label), marker });
}

/** How points of one colour are painted: the symbol of their kernel, the fill of their precision. */
function paints(points, colour, size, colours) {
  const fine = size > 7 ? 1 : 0.5;
  const looks = {
    full: ["", colour, colours.card, 0.8 * fine], open: ["", colours.card, colour, 1.8 * fine], dot: ["-dot", colours.card, colour, 1.5 * fine],
    pale: ["", mixed(colour, colours.card, 0.35), colour, 1.4 * fine], eye: ["-dot", colour, colours.card, 1.5 * fine],
    seed: ["-dot", mixed(colour, colours.card, 0.35), colour, 1.5 * fine],
  };
  const look = points.map((point) => looks[FILL_OF.get(point.precision)]);
  const symbol = points.map((point, index) => shapeOf(KERNELS[point.owner].shape).symbol + look[index][0]);
  return { symbol, color: look.map(([, fill]) => fill), line: { color: look.map(([, , line]) => line), width: look.map(([, , , width]) => width) } };
}

/** A colour with some part of another one. */
function mixed(colour, ground, part) {
  const channels = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  const [front, back] = [channels(colour), channels(ground)];
  return `rgb(${front.map((value, at) => Math.round(part * value + (1 - part) * back[at])).join(",")})`;
}

/** Entries of a legend for the fills, where there are several. */
function fillLegend(points, colours) {
  return filledPrecisions(points).map((precision) => symbols([[null, null]], {
    meta: "fill", hoverinfo: "skip", showlegend: true, name: plotlyText(PRECISIONS.get(precision)),
    marker: { size: 10, ...paints([{ precision, owner: ORDER[0].index }], colours.neutral, 10, colours), symbol: "circle" + (["dot", "eye", "seed"].includes(FILL_OF.get(precision)) ? "-dot" : "") },
  }));
}

/** The precisions of some points that fills tell apart: none where there is one. */
function filledPrecisions(points) {
  const found = new Set(points.map((point) => point.precision));
  return found.size > 1 ? [...PRECISIONS.keys()].filter((id) => found.has(id)) : [];
}

/** Faded dots below, the others above them. */
function dotTraces({ selection: { points }, projection }, colours, legend) {
  const isFaded = (point) => state.isolated !== null && point.owner !== state.isolated;
  const layers = state.isolated === null ? [false] : [true, false];
  return layers.flatMap((faded) => {
    const mine = thinned(points.filter((point) => isFaded(point) === faded), projection, faded ? MOST_FADED : MOST_DOTS);
    return [...LEVELS.values()].map((level) => levelTrace(level, mine, points.length, faded, colours, legend && !faded));
  });
}
