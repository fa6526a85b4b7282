/* Long listings: rows of one height in parts that are made when they come near the part that is seen. */

const PART = 100; // rows
const HEIGHT = 1.5; // of a row, as in the style

class Rows {
  /** `mark` gives the class of a row as it is now. */
  constructor(pane, mark) {
    Object.assign(this, { pane, mark, columns: [], rows: [], bodies: [] });
    const near = (entries) => entries.filter((entry) => entry.isIntersecting).forEach((entry) => this.fill(Number(entry.target.dataset.part)));
    this.observer = new IntersectionObserver(near, { root: pane, rootMargin: "800px" });
  }
  /** Columns are pairs: the header, and what makes the cell of a row.  Rows may also be a {gap} or have a {head} of their own. */
  show(columns, rows) {
    this.observer.disconnect();
    Object.assign(this, { columns, rows });
    this.bodies = Array.from({ length: Math.ceil(rows.length / PART) }, (_, part) => {
      const space = element("td", { colspan: columns.length });
      space.style.height = `${HEIGHT * Math.min(PART, rows.length - part * PART)}rem`;
      return element("tbody", { "data-part": part }, element("tr", {}, space));
    });
    this.pane.replaceChildren(element("table", {}, element("thead", {}, element("tr", {}, ...columns.map(([heading]) => heading))), ...this.bodies));
    this.bodies.forEach((body) => this.observer.observe(body));
    this.fill(0);
  }
  fill(part) {
    const body = this.bodies[part];
    if (!body || body.dataset.full) return;
    body.dataset.full = "1";
    this.observer.unobserve(body);
    const made = this.rows.slice(part * PART, (part + 1) * PART).map((row, index) => element("tr", { "data-row": part * PART + index, class: this.mark(row) || null }, ...this.build(row)));
    body.replaceChildren(...made);
  }
  build(row) {
    if (row.gap || row.head !== undefined) return [element("td", { colspan: this.columns.length, class: row.gap ? "gap" : "head" }, row.gap ? "\u22ee" : row.head)];
    return this.columns.map(([, make]) => make(row));
  }
  fillAll() {
    this.bodies.forEach((_, part) => this.fill(part));
  }
  /** Rows as they are marked now. */
  refresh() {
    for (const node of this.pane.querySelectorAll("tr[data-row]")) node.className = this.mark(this.rows[Number(node.dataset.row)]);
  }
  /** Bring a row into the middle of the pane, if it is not seen. */
  reveal(index) {
    if (index < 0) return;
    this.fill(Math.floor(index / PART));
    const [pane, head] = [this.pane.getBoundingClientRect(), this.pane.querySelector("thead").getBoundingClientRect()];
    const row = this.pane.querySelector(`tr[data-row="${index}"]`).getBoundingClientRect();
    if (row.top >= pane.top + head.height && row.bottom <= pane.bottom) return;
    this.pane.scrollTop += row.top - pane.top - (pane.height - row.height) / 2;
  }
}

/** Arrow keys: the next row that `counts` from the one `at`, in a direction; null at the end. */
function nextRow(rows, at, step, counts) {
  for (let index = at + step; index >= 0 && index < rows.length; index += step) if (counts(rows[index])) return index;
  return null;
}

/** A bar of what a row has of the largest: its own share, then paler that of code inlined there. */
function heatBar({ own, within }, largest) {
  const bar = element("span", { class: own > 0 || within > 0 ? "heat" : "" });
  for (const [share, kind] of [[own, "own"], [within, "within"]]) {
    if (!(share > 0)) continue;
    const part = element("i", { class: kind });
    part.style.width = `${Math.min(100, (100 * share) / (largest || 1))}%`;
    bar.append(part);
  }
  return bar;
}

function heading(label, title = "", kind = "") {
  return element("th", { scope: "col", title: title || null, class: kind || null }, label);
}

function cell(content, kind = "", title = "") {
  return element("td", { class: kind || null, title: title || null }, content);
}

/** A button that looks like a link. */
function link(label, act) {
  return element("button", { type: "button", class: "link", onclick: act }, label);
}

/** A table under columns, pairs of a header and what makes the cell of a row. */
function tableOf(columns, rows) {
  return element("table", {}, element("thead", {}, element("tr", {}, ...columns.map(([heading]) => heading))), element("tbody", {}, ...rows));
}

function rowOf(columns, one, attributes = {}) {
  return element("tr", attributes, ...columns.map(([, make]) => make(one)));
}

/** A share for a narrow column; nothing where there is nothing. */
function shareText(share) {
  if (!known(share) || share === 0) return "";
  return Math.abs(share) < 0.0005 ? "< 0.1 %" : `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)} %`;
}
