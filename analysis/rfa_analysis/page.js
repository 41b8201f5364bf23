"use strict";
// Tables with the class "sortable": a head's button sorts by its column; what is missing comes last.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
  heads.forEach((head, column) => {
    const button = head.querySelector("button");
    if (!button) return;
    button.addEventListener("click", () => {
      // Numbers, that is accuracies and speeds, begin with the greatest.
      const first = head.classList.contains("n") ? "descending" : "ascending";
      const other = first === "ascending" ? "descending" : "ascending";
      const order = head.getAttribute("aria-sort") === first ? other : first;
      heads.forEach((h) => h.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", order);
      const sign = order === "ascending" ? 1 : -1;
      const key = (row) => row.cells[column].dataset.v ?? "";
      const numeric = head.classList.contains("n");
      const rows = [...body.rows].sort((a, b) => {
        const x = key(a), y = key(b);
        if (x === "" || y === "") return (x === "") - (y === "");
        return sign * (numeric ? x - y : x.localeCompare(y, "en", { numeric: true }));
      });
      body.append(...rows);
    });
  });
}
// The filter above the table of runs: rows that hold all of its words.
const filter = document.getElementById("filter");
if (filter) {
  const rows = [...document.querySelectorAll("#table-runs tbody tr")];
  const count = document.getElementById("filter-count");
  filter.addEventListener("input", () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      shown += !row.hidden;
    }
    count.textContent = words.length ? `${shown} of ${rows.length} runs` : "";
  });
}
// A link to a run opens it; print shows everything.
const openTarget = () => {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target && target.tagName === "DETAILS") {
    target.open = true;
    target.scrollIntoView();
  }
};
addEventListener("hashchange", openTarget);
openTarget();
let closed = [];
addEventListener("beforeprint", () => {
  closed = [...document.querySelectorAll("details.run:not([open])")];
  if (closed.length <= 20) closed.forEach((d) => { d.open = true; });
});
addEventListener("afterprint", () => closed.forEach((d) => { d.open = false; }));
