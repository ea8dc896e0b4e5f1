(() => {
  "use strict";
  const byId = (id) => document.getElementById(id);
  const all = (selector, root = document) => Array.from(root.querySelectorAll(selector));

  // ---------------------------------------------------------------- the metric and data shown
  const picked = { metric: byId("metric"), data: byId("data") };
  const fits = (view, name) => {
    const own = view.dataset[name];
    return own === undefined || own === "" || own === (picked[name]?.value ?? "0");
  };
  const show = () => {
    for (const view of all(".view")) view.hidden = !fits(view, "metric") || !fits(view, "data");
  };
  for (const select of Object.values(picked)) select?.addEventListener("change", show);

  // ----------------------------------------------------------------- methods in the figures
  const toggle = (chip) => {
    const on = chip.getAttribute("aria-pressed") === "true";
    for (const part of all(`.method-${chip.dataset.method}`)) part.classList.toggle("off", !on);
  };
  for (const chip of all("#chips .chip")) {
    toggle(chip);
    chip.addEventListener("click", () => {
      chip.setAttribute("aria-pressed", String(chip.getAttribute("aria-pressed") !== "true"));
      toggle(chip);
    });
  }
  if (byId("chips")) byId("chips").hidden = false;

  // --------------------------------------------------------------------------------- sorting
  const keyOf = (cell, kind) => {
    const raw = cell.dataset.v ?? cell.textContent.trim();
    if (kind === "text") return raw.toLowerCase();
    const value = parseFloat(raw);
    return Number.isNaN(value) ? Infinity : value;
  };
  const sortTable = (table, column, descending) => {
    const heads = all("thead th", table);
    const kind = heads[column].dataset.sort;
    heads.forEach((head) => head.removeAttribute("aria-sort"));
    heads[column].setAttribute("aria-sort", descending ? "descending" : "ascending");
    const rows = Array.from(table.tBodies[0].rows).map((row) => [keyOf(row.cells[column], kind), row]);
    // An undefined value stays last in both directions.
    const order = (a, b) => (a === b ? 0 : a === Infinity ? 1 : b === Infinity ? -1 : (a < b) === descending ? 1 : -1);
    rows.sort((a, b) => order(a[0], b[0]));
    table.tBodies[0].append(...rows.map((pair) => pair[1]));
  };
  for (const table of all("table.sortable")) {
    all("thead th", table).forEach((head, column) => {
      if (!head.dataset.sort) return;
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => sortTable(table, column, head.getAttribute("aria-sort") === "ascending"));
    });
  }
  show();
})();
