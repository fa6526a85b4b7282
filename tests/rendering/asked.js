// What tests ask of a page: dots that stand for points of kernels (ridge points and arrows are of other traces), roofs, cells.
const of = (meta, id = "chart") => (document.getElementById(id).data || []).filter((trace) => trace.meta === meta);
const dots = () => of("dots").flatMap((trace) => [...trace.x]).length;
const lines = () => of("roof").length;
const faded = () => of("dots").filter((trace) => trace.marker.opacity < 0.5).flatMap((trace) => trace.x).length;
const all = (selector) => [...document.querySelectorAll(selector)];
const texts = (selector) => all(selector).filter((one) => one.checkVisibility()).map((one) => one.textContent.trim());
const cells = (place) => texts(`#table tbody tr > :nth-child(${place})`);
const column = (id) => cells(COLUMNS.findIndex((one) => one.id === id) + 1);
const lit = (pane) => texts(`#${pane}-pane tr.lit th`);
const share = (line) => all("#source-pane tbody tr").find((row) => row.cells[0].textContent.trim() === String(line)).cells[2].textContent;
const inSight = (pane, selector) => {
    const box = byId(`${pane}-pane`);
    const [outer, inner] = [box.getBoundingClientRect(), box.querySelector(selector).getBoundingClientRect()];
    return inner.top >= outer.top && inner.bottom <= outer.bottom + 1;
};
const labels = () => chart.layout.annotations.map((one) => one.text);
const place = (kernel, level) => {
    for (const [index, trace] of chart.data.entries()) {
        const at = trace.meta === "dots" ? [...trace.customdata].findIndex((i) => POINTS[i].kernel === kernel && POINTS[i].level === level) : -1;
        if (at < 0 || !(trace.marker.opacity > 0.5)) continue;
        const box = all("#chart .scatterlayer .trace")[index].querySelectorAll("path.point")[at].getBoundingClientRect();
        return [box.x + box.width / 2, box.y + box.height / 2];
    }
    return null;
};

// Pairs of texts that cover each other in charts and tables, what sticks out of the window, and whether the page is wider.
const crowding = () => {
    const turned = (node) => !node.closest(".main-svg") && /rotate\((?!-?0)/.test(node.getAttribute("transform") || "");
    const seen = (node) => node.checkVisibility({ visibilityProperty: true }) && node.textContent.trim() && !turned(node);
    const boxes = (selector) => [...document.querySelectorAll(selector)].filter(seen)
        .map((node) => [node.textContent.trim().slice(0, 40), node.getBoundingClientRect()]);
    const meet = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 3
        && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > Math.max(4, 0.35 * Math.min(a.height, b.height));
    const pairs = (list) => list.flatMap(([name, a], i) =>
        list.slice(i + 1).filter(([, b]) => meet(a, b)).map(([other]) => `${name} on ${other}`));
    const upright = ([, box]) => box.height <= 30 || box.width <= 30; // others are turned: more box than text
    const chart = boxes("#chart .annotation-text, #chart .xtick text, #chart .ytick text, #chart .g-xtitle text,"
        + "#chart .g-ytitle text, .charts svg text, #chart > svg:not(.main-svg) text").filter(upright);
    const ridges = all("#chart .scatterlayer .trace")[(window.chart?.data || []).findIndex((trace) => trace.meta === "ridge")];
    const under = chart.filter(([name]) => /mix/.test(name)).flatMap(([name, a]) => [...(ridges?.querySelectorAll("path.point") || [])].map((one) => one.getBoundingClientRect())
        .filter((b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 4).map(() => `${name} on a ridge`));
    const page = boxes("#table td > span, #table th > span, #table .sort, #controls button, #controls label, .tiles li, header h1,"
        + "header .sub span, header button, #answer li, #answer p");
    const out = [...document.querySelectorAll(".card, .top, main .banner, main .tiles, header, #chart svg")]
        .filter((node) => node.checkVisibility() && node.getBoundingClientRect().right > innerWidth + 1);
    const wide = document.documentElement.scrollWidth > innerWidth ? [`page is ${document.documentElement.scrollWidth} wide`] : [];
    return [...pairs(chart), ...under, ...pairs(page), ...out.map((node) => `outside: ${node.id || node.className}`), ...wide];
};
