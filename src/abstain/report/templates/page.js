// Interactive controls of a page: visibility of tagged parts and order of table rows.
const page = (() => {
  "use strict";
  const all = (selector, root = document) => Array.from(root.querySelectorAll(selector));
  const later = [];

  // ------------------------------------------------------------------------- sorting of tables
  const headsOf = (table) => all("thead th", table);
  const keyOf = (cell, kind) => {
    const raw = cell.querySelector("data")?.value ?? cell.textContent.trim();
    if (kind === "text") return raw.toLowerCase();
    const value = parseFloat(raw.replace(/,/g, "").replace("\u2212", "-"));
    return Number.isNaN(value) ? Infinity : value;
  };
  const sortTable = (table, column, descending) => {
    const heads = headsOf(table);
    const kind = heads[column].dataset.sort;
    heads.forEach((head) => head.removeAttribute("aria-sort"));
    heads[column].setAttribute("aria-sort", descending ? "descending" : "ascending");
    // Undefined values are last in both directions.
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
  // Tables of cards have no headers to click on narrow screens.
  const fillSortMenu = (select) => {
    const table = document.getElementById(select.dataset.sortBy);
    select.append(new Option("original order", ""));
    headsOf(table).forEach((head, column) => head.dataset.sort && select.append(new Option(head.textContent, column)));
    select.addEventListener("change", () => select.value && sortTable(table, +select.value, false));
  };

  // -------------------------------------------------------------------------------- visibility
  const pressed = (chip) => chip.getAttribute("aria-pressed") === "true";
  const hidden = (name) => new Set(all(`.chips[data-choice="${name}"] .chip`).filter((chip) => !pressed(chip)).map((chip) => chip.dataset.key));
  const selected = (name) => document.querySelector(`select[data-choice="${name}"]`)?.value;
  const names = Array.from(new Set(all("[data-choice]").map((choice) => choice.dataset.choice)));
  const show = () => {
    const rules = names.map((name) => {
      const [hiddenKeys, selectedKey] = [hidden(name), selected(name)];
      return [`data-in-${name}`, (keys) => !hiddenKeys.has(keys) && (!selectedKey || keys.split(" ").includes(selectedKey))];
    });
    const queries = new Map(all("[data-search]").map((field) => [field.dataset.search, field.value.trim().toLowerCase()]));
    for (const part of all(names.map((name) => `[data-in-${name}]`).join() || "none")) {
      const query = part.tagName === "TR" && queries.get(part.closest("table").id);
      part.hidden = rules.some(([tag, isVisible]) => part.hasAttribute(tag) && !isVisible(part.getAttribute(tag)))
        || Boolean(query && !part.textContent.toLowerCase().includes(query));
    }
    for (const output of all("output[data-row-count]")) {
      const bodies = all(`#${output.dataset.rowCount} tbody`).filter((body) => !body.hidden);
      const rows = bodies.flatMap((body) => Array.from(body.rows));
      output.dataset.noun ??= output.textContent;
      output.textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length} ${output.dataset.noun}`;
    }
    later.forEach((task) => task());
  };
  const toggle = (chip, name) => {
    for (const part of all(`.${name}-${chip.dataset.key}`)) part.classList.toggle("off", !pressed(chip));
  };

  // Open collapsed parts that contain the target of a link.
  const reveal = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    for (let part = target; part; part = part.parentElement) if (part.tagName === "DETAILS") part.open = true;
    target.scrollIntoView();
  };

  // -------------------------------------------------------------------------------------- start
  all("table.sortable").forEach(makeSortable);
  all("[data-sort-by]").forEach(fillSortMenu);
  // Menus of one choice in several sections have the same value.
  all("select[data-choice]").forEach((select) => select.addEventListener("change", () => {
    for (const other of all(`select[data-choice="${select.dataset.choice}"]`)) other.value = select.value;
    show();
  }));
  all("[data-search]").forEach((field) => field.addEventListener("input", show));
  for (const chip of all(".chip")) {
    const name = chip.parentElement.dataset.choice;
    toggle(chip, name);
    chip.addEventListener("click", () => {
      chip.setAttribute("aria-pressed", String(!pressed(chip)));
      toggle(chip, name);
      show();
    });
  }
  for (const box of all("[data-switch]")) {
    const set = () => { document.body.classList.toggle(box.dataset.switch, box.checked); };
    box.addEventListener("change", () => { set(); later.forEach((task) => task()); });
    set();
  }
  for (const jump of all("[data-jump]")) {
    jump.addEventListener("change", () => {
      if (jump.value) location.href = jump.value;
      jump.value = "";
    });
  }
  addEventListener("hashchange", reveal);
  for (const part of all(".scripted")) part.hidden = false;
  show();
  reveal();
  return { all, selected, hidden, later };
})();
