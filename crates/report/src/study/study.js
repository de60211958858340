// A click on a column's head sorts by it: figures from the largest, words from A, and the other way round next time.
for (const head of document.querySelectorAll("thead th")) {
  head.tabIndex = 0;
  const sort = () => {
    const table = head.closest("table"), body = table.tBodies[0], column = head.cellIndex;
    const before = head.getAttribute("aria-sort");
    const ascending = before ? before === "descending" : !head.classList.contains("n");
    const cell = (row) => row.cells[column];
    const figure = (row) => Number(cell(row).dataset.v ?? -Infinity);
    const order = (a, b) => figure(a) - figure(b) || cell(a).textContent.localeCompare(cell(b).textContent);
    const rows = [...body.rows].sort(order);
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
    body.append(...(ascending ? rows : rows.reverse()));
  };
  head.addEventListener("click", sort);
  head.addEventListener("keydown", (event) => { if (event.key === "Enter") sort(); });
}
