// The page needs none of this: it sorts and hides.
const regions = document.querySelector("#regions");
const order = document.querySelector("#order"), filter = document.querySelector("#filter");
document.querySelectorAll(".scripted").forEach(e => e.hidden = false);
if (regions) {
  const all = [...regions.querySelectorAll(".region")];
  order.onchange = () => all.sort(order.value === "name"
    ? (a, b) => a.dataset.name.localeCompare(b.dataset.name)
    : (a, b) => b.dataset[order.value] - a.dataset[order.value]).forEach(e => regions.append(e));
  filter.oninput = () => all.forEach(e => e.hidden = !e.dataset.name.toLowerCase().includes(filter.value.toLowerCase()));
}
document.querySelectorAll(".figures th").forEach((th, column) => th.onclick = () => {
  const body = th.closest("table").tBodies[0], sign = th.dataset.sign = -(th.dataset.sign || 1);
  const key = row => row.cells[column].dataset.v ?? row.cells[column].textContent;
  [...body.rows].sort((a, b) => sign * (Number(key(a)) - Number(key(b)) || key(a).localeCompare(key(b))))
    .forEach(row => body.append(row));
});
