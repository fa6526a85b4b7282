/* The reader's choices as names and values of the address, and back: what is not known here is passed over. */

function choices() {
  const fresh = freshState();
  const sort = (one) => (one.descending ? "-" : "") + one.column;
  const found = {
    gpu: state.device === fresh.device ? null : state.device,
    precision: state.precision || null,
    q: state.query || null,
    sort: sort(state.sort) === sort(fresh.sort) ? null : sort(state.sort),
    symbol: state.chosen === null ? null : String(state.chosen),
    theme: state.theme || null,
  };
  return Object.entries(found).filter(([, value]) => value !== null);
}

function stateOf(link) {
  const fresh = freshState();
  const get = (name) => link.get(name) || "";
  const column = get("sort").replace(/^-/, "");
  const device = DEVICES.includes(link.get("gpu")) ? link.get("gpu") : fresh.device;
  const symbol = POINTS.find((point) => String(point.index) === link.get("symbol") && point.device === device);
  return {
    ...fresh,
    device,
    precision: Object.hasOwn(PAGE.precisions, get("precision")) ? get("precision") : "",
    query: get("q").slice(0, 500),
    sort: TABLE_COLUMNS.includes(column) ? { column, descending: get("sort").startsWith("-") } : fresh.sort,
    chosen: symbol ? symbol.index : null,
    theme: ["light", "dark"].includes(get("theme")) ? get("theme") : "",
  };
}
