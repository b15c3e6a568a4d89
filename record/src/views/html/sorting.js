// Lists of functions: a name filters those that are told and those that are not, a button sorts the first. Without this all are there, as they come.
document.querySelectorAll(".function-list").forEach(list => {
  const tools = list.querySelector(".sorting");
  if (!tools) return;
  const field = tools.querySelector(".filter"), found = tools.querySelector("output"), keys = [...tools.querySelectorAll("button")];
  const all = [...list.querySelectorAll("[data-values]")], told = list.querySelector(".rows"), as_they_come = all.filter(row => row.parentNode === told);
  const name = row => row.querySelector(".name").textContent, value = (row, place) => Number(row.dataset.values.split(" ")[place]);
  const sort = key => {
    const place = key.dataset.key === "name" ? -1 : tools.dataset.order.split(" ").indexOf(key.dataset.key);
    [...as_they_come].sort(place < 0 ? (a, b) => name(a).localeCompare(name(b)) : (a, b) => value(b, place) - value(a, place))
      .forEach(row => told.append(row));
    keys.forEach(other => other.setAttribute("aria-pressed", other === key));
  };
  const filter = () => {
    const wanted = field.value.toLowerCase();
    all.forEach(row => row.hidden = !name(row).toLowerCase().includes(wanted));
    const shown = all.filter(row => !row.hidden).length;
    found.textContent = wanted ? `${shown} of ${all.length} functions` : `${all.length} function${all.length === 1 ? "" : "s"}`;
  };
  keys.forEach(key => key.onclick = () => sort(key));
  field.oninput = filter;
  tools.hidden = false;
});
