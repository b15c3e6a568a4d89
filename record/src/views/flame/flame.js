// A click on a frame makes it as wide as there is room, one on a frame that holds it less so; a search dims what does not match.
// Without this, graphs are pictures with tooltips.
const CHARACTER = 6.7, LEAST = 2e-4; // pixels; percent of the whole: less is what rounding has left

const flames = [...document.querySelectorAll("svg.flame")].map(graph => {
  const frames = [...graph.querySelectorAll(".frames svg")].map(box => {
    const label = box.querySelector("text"), number = name => parseFloat(box.getAttribute(name));
    return {box, label, name: label.textContent, x: number("x"), width: number("width")};
  });
  const matched = (graph.querySelector(".matched") ?? graph.parentNode.querySelector(".matched"));
  let [left, part] = [0, 100];
  const draw = () => {
    const pixels = graph.getBoundingClientRect().width / 100;
    for (const {box, label, name, x, width} of frames) {
      const from = Math.max(left, x), to = Math.min(left + part, x + width);
      box.style.display = to - from < LEAST ? "none" : "";
      box.setAttribute("x", 100 * (from - left) / part + "%");
      box.setAttribute("width", Math.max(0, 100 * (to - from) / part) + "%");
      const fits = Math.floor((100 * (to - from) / part * pixels - 7) / CHARACTER);
      label.textContent = name.length <= fits ? name : fits < 3 ? "" : name.slice(0, fits - 1) + "…";
    }
  };
  const zoom = frame => {
    [left, part] = frame ? [frame.x, frame.width] : [0, 100];
    draw();
  };
  const search = term => {
    let [end, sum] = [0, 0]; // of those that match, what is in another one counts once
    for (const {box, name, x, width} of frames) {
      const found = term !== "" && name.toLowerCase().includes(term);
      box.classList.toggle("found", found);
      if (found && x >= end - LEAST) [end, sum] = [x + width, sum + width];
    }
    graph.classList.toggle("searched", term !== "");
    if (matched) matched.textContent = term && `${sum.toFixed(1)} % match`;
  };
  frames.forEach(frame => frame.box.onclick = () => zoom(frame));
  if (graph === document.documentElement) graph.setAttribute("width", "100%");
  new ResizeObserver(draw).observe(graph);
  draw();
  return {zoom, search};
});

const search = text => flames.forEach(graph => graph.search((text ?? "").toLowerCase()));
document.querySelectorAll("input.search").forEach(field => field.oninput = () => search(field.value));
document.querySelectorAll("text.search").forEach(button => button.onclick = () => search(prompt("Part of a function's name")));
document.querySelectorAll(".reset").forEach(button => button.onclick = () => flames.forEach(graph => graph.zoom()));
