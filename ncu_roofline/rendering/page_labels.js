/* Where labels go: along the roofs and beside the dots, in pixels, so that none covers another at any zoom. */

const FONT = '"Helvetica Neue", Arial, "Liberation Sans", "DejaVu Sans", sans-serif';
const LABEL_SIZE = 12;
const CELL = 5;
const CLEAR = 14; // cost of a text that covers next to nothing
const pen = document.createElement("canvas").getContext("2d");

function textWidth(text, size = LABEL_SIZE) {
  pen.font = `${size}px ${FONT}`;
  return pen.measureText(text).width * 1.04 + 4;
}

/** Maps between data (decades) and pixels of the plot area: x to the right, y downwards. */
class Projection {
  constructor(ranges, width, height) {
    [this.x0, this.x1] = ranges.x;
    [this.y0, this.y1] = ranges.y;
    this.width = width;
    this.height = height;
  }
  pixel(x, y) {
    return [((x - this.x0) / (this.x1 - this.x0)) * this.width, ((this.y1 - y) / (this.y1 - this.y0)) * this.height];
  }
  data(px, py) {
    return [this.x0 + (px / this.width) * (this.x1 - this.x0), this.y1 - (py / this.height) * (this.y1 - this.y0)];
  }
}

/** The plot area in small cells: which are covered by labels (forbidden), by dots and by lines (to be avoided). */
class Floor {
  constructor(width, height) {
    this.width = width;
    this.height = height;
    this.columns = Math.ceil(width / CELL) + 2;
    this.labels = new Uint8Array(this.columns * (Math.ceil(height / CELL) + 2));
    this.dots = new Uint8Array(this.labels.length);
    this.lines = new Uint8Array(this.labels.length);
  }
  cells(x, y, reach) {
    const found = [];
    for (let row = Math.floor((y - reach) / CELL); row <= Math.floor((y + reach) / CELL); row += 1) {
      for (let column = Math.floor((x - reach) / CELL); column <= Math.floor((x + reach) / CELL); column += 1) {
        if (row >= 0 && column >= 0 && column < this.columns) found.push(row * this.columns + column);
      }
    }
    return found;
  }
  mark(layer, x, y, reach) {
    for (const cell of this.cells(x, y, reach)) layer[cell] = Math.min(layer[cell] + 1, 255);
  }
  /** Cost of a text along a line of points: infinite on another label or outside, else the dots and, with less weight, the lines it covers. */
  cost(points) {
    let covered = 0;
    for (const [x, y] of points) {
      if (x < 0 || y < 6 || x > this.width || y > this.height - 4) return Infinity;
      for (const cell of this.cells(x, y, 6)) {
        if (this.labels[cell]) return Infinity;
        covered += (this.dots[cell] ? 2 : 0) + (this.lines[cell] ? 0.15 : 0);
      }
    }
    return covered;
  }
  take(points) {
    for (const [x, y] of points) this.mark(this.labels, x, y, 8);
  }
}

/** Points along a text of some width, centred on (x, y), tilted by `angle` (radians, clockwise). */
function along(x, y, width, angle) {
  const steps = Math.max(2, Math.ceil(width / 6));
  return Array.from({ length: steps + 1 }, (_, i) => {
    const distance = (i / steps - 0.5) * width;
    return [x + distance * Math.cos(angle), y + distance * Math.sin(angle)];
  });
}

/** From where to where (decades of intensity) a roof among some holds: diagonals end at the highest compute roof, compute roofs start at a ridge. */
function spanOf(roof, roofs) {
  const [compute, bandwidth] = ["compute", "bandwidth"].map((kind) => roofs.filter((other) => other.kind === kind).map((other) => other.value));
  if (roof.kind === "bandwidth" && compute.length) return [-30, Math.log10(Math.max(...compute) / roof.value)];
  if (roof.kind === "compute" && bandwidth.length) return [Math.log10(roof.value / Math.max(...bandwidth)), 30];
  return [-30, 30];
}

/** The visible part of a roof in pixels, from its low end: [ax, ay, bx, by], or null. */
function visibleSegment(roof, roofs, projection) {
  const { x0, x1, y0, y1 } = projection;
  const [low, high] = spanOf(roof, roofs);
  let [from, to] = [Math.max(low, x0), Math.min(high, x1)];
  const level = Math.log10(roof.value);
  if (roof.kind === "wall") {
    if (level <= x0 || level >= x1) return null;
    return [...projection.pixel(level, y0), ...projection.pixel(level, y1)];
  }
  if (roof.kind === "bandwidth") [from, to] = [Math.max(from, y0 - level), Math.min(to, y1 - level)];
  else if (level <= y0 || level >= y1) return null;
  if (from >= to) return null;
  const height = (x) => (roof.kind === "bandwidth" ? x + level : level);
  return [...projection.pixel(from, height(from)), ...projection.pixel(to, height(to))];
}

function markLine(floor, segment) {
  if (!segment) return;
  const [ax, ay, bx, by] = segment;
  const steps = Math.ceil(Math.hypot(bx - ax, by - ay) / CELL);
  for (let i = 0; i <= steps; i += 1) floor.mark(floor.lines, ax + ((bx - ax) * i) / steps, ay + ((by - ay) * i) / steps, 0);
}

/** Has a roof a parallel one so near, above or below, that a label between them would seem to be the other's? */
function crowdedSides(roof, roofs, projection) {
  const perDecade = projection.height / (projection.y1 - projection.y0);
  const tilt = roof.kind === "bandwidth" ? Math.atan2(perDecade, projection.width / (projection.x1 - projection.x0)) : 0;
  const sides = { above: false, below: false };
  for (const other of roofs) {
    if (other === roof || other.kind !== roof.kind || other.value === roof.value) continue;
    const distance = Math.abs(Math.log10(other.value / roof.value)) * perDecade * Math.cos(tilt);
    if (distance < 18) sides[other.value > roof.value ? "above" : "below"] = true;
  }
  return sides;
}

function markRoofs(roofs, projection, floor) {
  for (const roof of roofs) markLine(floor, visibleSegment(roof, roofs, projection));
}

/** Where the labels of some roofs go, as far as there is room; the first of these takes it first. */
function roofPlaces(roofs, textsOf, projection, floor) {
  return roofs.flatMap((roof) => {
    const segment = visibleSegment(roof, roofs, projection);
    const place = segment && roofLabel(roof, textsOf(roof), segment, crowdedSides(roof, roofs, projection), floor);
    return place ? [{ roof, ...place }] : [];
  });
}

/** The label of a roof: the fullest of its texts that fits and covers little; the bare name only where nothing else fits. */
function roofLabel(roof, texts, segment, sides, floor) {
  let best = null;
  for (const [index, text] of texts.entries()) {
    if (best && (best.cost < CLEAR || index === texts.length - 1)) break;
    const place = alongRoof(roof, text, segment, sides, floor);
    if (place && (!best || place.cost < best.cost)) best = { ...place, text };
  }
  if (best) floor.take(best.points);
  return best;
}

/** The place along a roof where a text covers least; null where the line is too short or full. */
function alongRoof(roof, text, segment, sides, floor) {
  const [ax, ay, bx, by] = segment;
  const length = Math.hypot(bx - ax, by - ay);
  const width = textWidth(text);
  if (length < width + 12) return null;
  const angle = Math.atan2(by - ay, bx - ax);
  const [ux, uy] = [Math.cos(angle), Math.sin(angle)];
  const penalty = { above: sides.above && !sides.below ? 120 : 0, below: sides.below && !sides.above ? 120 : 1.5 };
  let best = { cost: Infinity };
  for (let i = 0; i <= 80; i += 1) {
    const side = i % 2 ? -1 : 1; // above the line, or below
    const fraction = roof.kind === "compute" ? 1 - Math.floor(i / 2) / 40 : Math.floor(i / 2) / 40;
    const distance = 6 + width / 2 + fraction * (length - width - 12);
    const [x, y] = [ax + distance * ux + 10 * side * uy, ay + distance * uy - 10 * side * ux];
    const points = along(x, y, width, angle);
    const cost = floor.cost(points) + 0.1 * i + (side < 0 ? penalty.below : penalty.above);
    if (cost < best.cost) best = { cost, points, x, y, angle: (angle * 180) / Math.PI };
  }
  return best.cost === Infinity ? null : best;
}

/** The name of a kernel beside its dots: right, left, above or below; further away with a line to them; null where there is no room. */
function nameLabel(text, pixels, floor, { others = [], leaders = true, limit = CLEAR } = {}) {
  const width = textWidth(text);
  const right = pixels.reduce((a, b) => (b[0] > a[0] ? b : a));
  const left = pixels.reduce((a, b) => (b[0] < a[0] ? b : a));
  const beside = [
    [right[0] + 14 + width / 2, right[1]],
    [left[0] - 14 - width / 2, left[1]],
    [right[0], right[1] - 15],
    [right[0], right[1] + 15],
    [left[0], left[1] - 15],
    [left[0], left[1] + 15],
  ];
  const near = cheapest(beside.map(([x, y]) => ({ x, y })), width, floor, (place) => (strays(place, width, pixels, others) ? CLEAR : 0));
  if (near.cost < CLEAR / 2) return taken(near, floor);
  const away = [30, 45, 65, 90].flatMap((distance) => [left, right].flatMap(([x, y]) => SIDES.map(([across, down]) => ({
    x: x + across * (distance + (down ? 0 : width / 2)) + (across && down ? across * width * 0.4 : 0), y: y + down * distance, leader: [x, y], far: distance / 30,
  }))));
  const far = leaders ? cheapest(away, width, floor, (place) => place.far) : near;
  const best = far.cost < near.cost ? far : near;
  if (best.cost >= limit) return null; // a name that covers dots is worse than no name
  if (best.leader) best.leader = [[Math.min(Math.max(best.leader[0], best.x - width / 2 + 4), best.x + width / 2 - 4), best.y + (best.leader[1] > best.y ? 7 : best.leader[1] < best.y ? -7 : 0)], best.leader];
  return taken(best, floor);
}

const SIDES = [[0.6, -0.6], [0.6, 0.6], [-0.6, -0.6], [-0.6, 0.6], [0, -1], [0, 1], [1, 0], [-1, 0]];

function cheapest(places, width, floor, price) {
  let best = { cost: Infinity };
  for (const place of places) {
    const points = along(place.x, place.y, width, 0);
    const cost = floor.cost(points) + price(place);
    if (cost < best.cost) best = { ...place, cost, points, angle: 0 };
  }
  return best;
}

function taken(place, floor) {
  floor.take(place.points);
  return place;
}

/** Would a reader take a text for that of another dot, which is as near to it? */
function strays({ x, y }, width, own, others) {
  const distance = ([px, py]) => Math.hypot(Math.max(Math.abs(px - x) - width / 2, 0), py - y);
  const mine = Math.min(...own.map(distance));
  return others.some((dot) => distance(dot) <= Math.max(mine, 18));
}

function annotation(place, text, colour, projection, background) {
  const [x, y] = projection.data(place.x, place.y);
  return {
    x, y, xref: "x", yref: "y", text: plotlyText(text), showarrow: false, textangle: place.angle, xanchor: "center", yanchor: "middle",
    font: { size: LABEL_SIZE, color: colour, family: FONT }, bgcolor: background, borderpad: 0,
  };
}
