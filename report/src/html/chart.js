// Charts over time: all of a section show the same part of it, which a drag over one of them, the buttons, or keys choose. Without this they show all of it.
document.querySelectorAll(".over-time").forEach(section => {
  const WIDTH = 1000, HEIGHT = 100, LEAST = 1e-4, DRAG = 6; // a chart's own units; the least part of all; pixels
  const charts = [...section.querySelectorAll("svg.time")], axes = [...section.querySelectorAll(".axis")];
  const tools = section.querySelector(".zoom"), said = tools.querySelector("output"), all = Number(section.dataset.end);
  let [from, to] = [0, all];
  // As many digits as tell the labels of an axis apart.
  const time = (at, apart) => {
    const [unit, name] = [[1e9, "s"], [1e6, "ms"], [1e3, "us"], [1, "ns"]].find(([unit]) => to >= unit) ?? [1, "ns"];
    return at ? `${(at / unit).toFixed(Math.max(0, Math.ceil(1 - Math.log10(apart / unit))))} ${name}` : "0";
  };
  const show = (begin, width) => {
    width = Math.min(Math.max(width, LEAST * all), all);
    from = Math.min(Math.max(begin, 0), all - width);
    to = from + width;
    charts.forEach(chart => chart.setAttribute("viewBox", `${WIDTH * from / all} 0 ${WIDTH * width / all} ${HEIGHT}`));
    axes.forEach(axis => [...axis.children].forEach((label, k, {length}) =>
      label.textContent = time(from + k * width / (length - 1), width / (length - 1))));
    said.textContent = width < all ? `${time(from, width)} to ${time(to, width)}` : "all of the time";
  };
  const moves = {
    in: width => show(from + width / 4, width / 2), out: width => show(from - width / 2, 2 * width),
    earlier: width => show(from - width / 4, width), later: width => show(from + width / 4, width), all: () => show(0, all),
  };
  const move = name => moves[name](to - from);
  tools.querySelectorAll("button").forEach(button => button.onclick = () => move(button.dataset.zoom));
  const keys = {"+": "in", "=": "in", "-": "out", ArrowLeft: "earlier", ArrowRight: "later", Escape: "all"};
  tools.onkeydown = event => {
    if (!(event.key in keys) || event.ctrlKey || event.metaKey || event.altKey) return;
    move(keys[event.key]);
    event.preventDefault();
  };
  charts.forEach(chart => {
    let chosen = null, start = 0;
    const place = event => {
      const {left, width} = chart.getBoundingClientRect();
      return from + (to - from) * Math.min(Math.max((event.clientX - left) / width, 0), 1);
    };
    const ends = event => [Math.min(start, place(event)), Math.abs(place(event) - start)];
    const end = () => chosen = chosen?.remove() ?? null;
    chart.onpointerdown = event => {
      if (event.button) return;
      start = place(event);
      chosen = chart.appendChild(document.createElementNS(chart.namespaceURI, "rect"));
      Object.entries({class: "chosen", y: 0, width: 0, height: HEIGHT}).forEach(([key, value]) => chosen.setAttribute(key, value));
      chart.setPointerCapture?.(event.pointerId);
    };
    chart.onpointermove = event => {
      if (!chosen) return;
      const [begin, width] = ends(event);
      chosen.setAttribute("x", WIDTH * begin / all);
      chosen.setAttribute("width", WIDTH * width / all);
    };
    chart.onpointerup = event => {
      const [begin, width] = ends(event), pixels = width / (to - from) * chart.getBoundingClientRect().width;
      if (chosen && pixels >= DRAG) show(begin, width);
      end();
    };
    chart.onpointercancel = end;
    chart.ondblclick = () => move("all");
    chart.style.touchAction = "pan-y"; // (a finger that goes sideways chooses)
  });
  tools.hidden = false;
  show(0, all);
});
