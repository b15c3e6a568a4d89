// The page needs none of this: it sorts, hides, and shows more of what the table of all figures has.
const regions = document.querySelector("#regions"), more = document.querySelector("#more");
const order = document.querySelector("#order"), filter = document.querySelector("#filter");
const signs = [...document.querySelectorAll(".legend .sign")].map(sign => sign.textContent);
const DOUBTFUL = 15, LABELLED = 8, LEVELS = [["a", 5, 4, 0, 30], ["b", 10, 8, 32, 18]]; // class, column, parts, top, height
document.querySelectorAll(".scripted").forEach(e => e.hidden = false);

const element = (name, attributes, ...children) => {
  const svg = ["svg", "rect", "text", "title"].includes(name);
  const made = svg ? document.createElementNS(document.querySelector("svg").namespaceURI, name) : document.createElement(name);
  Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
  made.append(...children);
  return made;
};
const cell = (row, column) => row.cells[column].textContent, value = (row, column) => Number(row.cells[column].dataset.v ?? cell(row, column));

// The bar of a row of the table.
const bar = row => {
  const parts = [];
  for (const [name, first, count, top, height] of LEVELS) {
    const error = cell(row, first + count), at = {y: top, height};
    if (!(Number(error) >= 0)) continue;
    for (let k = 0, left = 0; k < count; k++) {
      const share = cell(row, first + k), title = row.closest("table").tHead.rows[0].cells[first + k].textContent;
      parts.push(element("rect", {class: name + k, x: left + "%", width: share + "%", ...at},
        element("title", {}, `${title} ${share} %, within ${error} points`)));
      if (share > LABELLED) parts.push(element("text", {class: "on-" + (error > DOUBTFUL ? "doubt" : name + k), x: left + share / 2 + "%",
        y: top + height / 2, "dominant-baseline": "central", "text-anchor": "middle"}, (name === "a" ? signs[k] + " " : "") + Math.round(share)));
      left += Number(share);
    }
    if (error > DOUBTFUL) parts.splice(-count, 0, element("rect", {class: "doubt", x: 0, width: "100%", ...at}));
  }
  return element("svg", {class: "bar", role: "img", width: "100%", height: 50, "aria-label": cell(row, 0)}, ...parts);
};

// A region as the page has the largest.
const article = row => {
  const name = cell(row, 0), inside = row.nextElementSibling, alone = inside?.className === "x" ? inside : row;
  const of = kind => kind === "inclusive" ? row : alone;
  const amount = kind => element("div", {class: kind + " meta"}, `${cell(of(kind), 2)} slots, ${cell(of(kind), 3)}`);
  const bounds = kind => [["level 1", 9, " points"], ["level 2", 18, ""]].filter(([, column]) => Number(cell(of(kind), column)) >= 0)
    .map(([level, column, unit]) => `${level} within ${cell(of(kind), column)}${unit}`).join(", ") || "not measured";
  const bars = kind => element("div", {class: kind}, element("div", {class: "head"}, element("span", {class: "bound"}, bounds(kind))),
    bar(of(kind)));
  return element("article", {class: "region", "data-name": name, "data-slots": value(row, 2), "data-exclusive": value(alone, 2),
    "data-wasted": cell(alone, 9) > DOUBTFUL ? 0 : value(alone, 2) * (100 - cell(alone, 5)) / 100 || 0, "data-executions": value(row, 1)},
    element("div", {}, element("div", {class: "name"}, name), element("div", {class: "meta"}, `executions: ${cell(row, 1)}`),
      amount("inclusive"), amount("exclusive")),
    element("div", {}, bars("inclusive"), bars("exclusive")));
};

if (regions) {
  let rest = more ? [...document.querySelectorAll(".figures .r")].slice(regions.children.length) : [];
  const all = [...regions.children];
  const matches = name => name.toLowerCase().includes(filter.value.toLowerCase());
  const update = () => {
    all.sort(order.value === "name" ? (a, b) => a.dataset.name.localeCompare(b.dataset.name)
      : (a, b) => b.dataset[order.value] - a.dataset[order.value]).forEach(e => regions.append(e));
    all.forEach(e => e.hidden = !matches(e.dataset.name));
    if (more) [more.hidden, more.textContent] = [!rest.length, `show more: ${rest.length} are left`];
  };
  const add = wanted => {
    const shown = new Set(rest.filter(wanted).slice(0, 100));
    all.push(...[...shown].map(article));
    rest = rest.filter(row => !shown.has(row));
    update();
  };
  order.onchange = update;
  filter.oninput = () => add(row => filter.value && matches(cell(row, 0)));
  if (more) more.onclick = () => add(row => matches(cell(row, 0)));
  update();
}
document.querySelectorAll(".figures th").forEach((th, column) => {
  th.tabIndex = 0;
  th.onkeydown = event => event.key === "Enter" && th.click();
  th.onclick = () => sort(th, column);
});
function sort(th, column) {
  const body = th.closest("table").tBodies[0], sign = th.dataset.sign = -(th.dataset.sign || 1);
  const key = row => row.cells[column].dataset.v ?? row.cells[column].textContent;
  [...body.rows].sort((a, b) => sign * (Number(key(a)) - Number(key(b)) || key(a).localeCompare(key(b))))
    .forEach(row => body.append(row));
}
