// A click on a frame, or Enter where arrows have led, makes it as wide as there is room, one on a frame that holds it less so; a search fades what does not match.
// Without this, graphs are pictures with tooltips.
const ROW = 18, CHARACTER = 6.7, LEAST = 2e-4; // pixels (a row, a character); percent of the whole: less is what rounding has left

const flames = [...document.querySelectorAll("svg.flame")].map(graph => {
  const frames = [...graph.querySelectorAll(".frames svg")].map(box => {
    const label = box.querySelector("text"), number = name => parseFloat(box.getAttribute(name));
    return {box, label, name: label.textContent, x: number("x"), y: number("y"), width: number("width")};
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
  // From a frame to the one above or below that it shares most with, or to the next of its row.
  const toward = {
    ArrowUp: (a, b) => a.y - b.y === ROW && overlap(a, b), ArrowDown: (a, b) => b.y - a.y === ROW && overlap(a, b),
    ArrowLeft: (a, b) => a.y === b.y && b.x < a.x && b.x + 1e3, ArrowRight: (a, b) => a.y === b.y && b.x > a.x && 1e3 - b.x,
  };
  const overlap = (a, b) => Math.max(0, Math.min(a.x + a.width, b.x + b.width) - Math.max(a.x, b.x));
  const focused = frame => frames.forEach(one => one.box.setAttribute("tabindex", one === frame ? 0 : -1));
  const pressed = (event, frame) => {
    const weight = toward[event.key];
    const near = weight && frames.filter(one => one.box.style.display === "" && weight(frame, one))
      .reduce((best, one) => best && weight(frame, best) >= weight(frame, one) ? best : one, null);
    if (near) near.box.focus();
    else if (event.key === "Enter" || event.key === " ") zoom(frame);
    else if (event.key === "Escape") zoom();
    else if (!weight) return;
    event.preventDefault();
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
  frames.forEach(frame => {
    frame.box.onclick = () => zoom(frame);
    frame.box.onkeydown = event => pressed(event, frame);
    frame.box.setAttribute("role", "button"); // (its name is its title)
    frame.box.onfocus = () => focused(frame);
  });
  focused(frames[0]);
  graph.setAttribute("role", "group");
  if (graph === document.documentElement) graph.setAttribute("width", "100%");
  new ResizeObserver(draw).observe(graph);
  draw();
  return {zoom, search, enter: () => frames[0]?.box.focus()};
});

const search = text => flames.forEach(graph => graph.search((text ?? "").toLowerCase()));
document.querySelectorAll("input.search").forEach(field => field.oninput = () => search(field.value));
document.querySelectorAll("text.button").forEach(button => {
  button.setAttribute("role", "button");
  button.setAttribute("tabindex", 0);
  // (in an SVG file Chromium's Tab goes no further than to the first)
  button.onkeydown = event => event.key === "Enter" ? button.onclick() : event.key.startsWith("Arrow") && flames[0].enter();
});
document.querySelectorAll("text.search").forEach(button => button.onclick = () => search(prompt("Part of a function's name")));
document.querySelectorAll(".reset").forEach(button => button.onclick = () => flames.forEach(graph => graph.zoom()));
