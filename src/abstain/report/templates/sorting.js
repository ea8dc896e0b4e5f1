// Tables whose rows a click on a head puts in order: shared by the pages of the reports.
const sorting = (() => {
  "use strict";
  const headsOf = (table) => Array.from(table.querySelectorAll("thead th"));
  const keyOf = (cell, kind) => {
    const raw = cell.dataset.v ?? cell.textContent.trim();
    if (kind === "text") return raw.toLowerCase();
    const value = parseFloat(raw.replace(/[\u202f,]/g, ""));
    return Number.isNaN(value) ? Infinity : value;
  };
  const sortTable = (table, column, descending) => {
    const heads = headsOf(table);
    const kind = heads[column].dataset.sort;
    heads.forEach((head) => head.removeAttribute("aria-sort"));
    heads[column].setAttribute("aria-sort", descending ? "descending" : "ascending");
    // An undefined value stays last in both directions.
    const order = (a, b) => (a === b ? 0 : a === Infinity ? 1 : b === Infinity ? -1 : (a < b) === descending ? 1 : -1);
    for (const body of table.tBodies) {
      const rows = Array.from(body.rows).map((row) => [keyOf(row.cells[column], kind), row]);
      rows.sort((a, b) => order(a[0], b[0]));
      body.append(...rows.map((pair) => pair[1]));
    }
  };
  const makeSortable = (table) => {
    headsOf(table).forEach((head, column) => {
      if (!head.dataset.sort) return;
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => sortTable(table, column, head.getAttribute("aria-sort") === "ascending"));
    });
  };
  return { sortTable, makeSortable };
})();
