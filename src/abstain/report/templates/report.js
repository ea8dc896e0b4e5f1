(() => {
  "use strict";
  const byId = (id) => document.getElementById(id);
  const all = (selector, root = document) => Array.from(root.querySelectorAll(selector));
  const read = (id) => JSON.parse(byId(id).textContent);
  const data = read("abstain-data");
  const specs = read("abstain-specs");
  const state = { split: 0, hidden: new Set(), charts: new Map() };

  // ------------------------------------------------------------------------- data of a chart
  const shown = () => data.cases.filter((c) => c.split === state.split && !state.hidden.has(c.score));
  const rowsOf = (columns, score) => {
    const names = Object.keys(columns);
    return columns[names[0]].map((_, i) => {
      const row = { score };
      for (const name of names) row[name] = columns[name][i];
      return row;
    });
  };
  const risks = (kind) => () => shown().flatMap((c) => {
    const rows = rowsOf(c.curve, data.scores[c.score]).map((row) => ({ ...row, risk: row[kind] }));
    const start = kind === "selective" ? rows[0].risk : 0;
    return [{ score: rows[0].score, coverage: 0, risk: start, start: true }, ...rows];
  });
  const part = (key) => () => shown().flatMap((c) => (c[key] ? rowsOf(c[key], data.scores[c.score]) : []));
  // What accepting at random gives: the risk of all samples, or its share.
  const ignorance = (kind) => () => shown().slice(0, 1).flatMap((c) => [
    { x: 0, y: kind === "selective" ? c.risk : 0 }, { x: 1, y: c.risk },
  ]);
  const sources = {
    selective: { curves: risks("selective"), reference: ignorance("selective") },
    generalized: { curves: risks("generalized"), reference: ignorance("generalized") },
    reliability: { reliability: part("reliability"), reference: () => [{ x: 0, y: 0 }, { x: 1, y: 1 }] },
    cwsa: { curves: part("cwsa") },
    cwsa_plus: { curves: part("cwsa_plus") },
  };
  // The first few accepted samples make a spike that would flatten the rest of the curve.
  const top = (rows) => {
    const steady = rows.filter((row) => row.coverage >= 0.05).map((row) => row.risk);
    return Math.max(...steady, 0) || 0.01;
  };

  // ---------------------------------------------------------------------------------- charts
  const fill = (name) => {
    const view = state.charts.get(name);
    if (!view) return;
    for (const [dataset, rows] of Object.entries(sources[name])) {
      const values = rows();
      view.data(dataset, values);
      if (values.length && "risk" in values[0]) view.signal("top", top(values));
    }
    view.runAsync();
  };
  const zoomed = (signals) => (how) => {
    const { view, x, y } = signals;
    const set = (field, domain) => view.signal("zoom_" + field, domain);
    if (how === "reset") { set(x, null); set(y, null); view.runAsync(); return; }
    const factor = how === "in" ? 0.6 : 1 / 0.6;
    const [x0, x1] = view.scale("x").domain();
    const [y0, y1] = view.scale("y").domain();
    const middle = (x0 + x1) / 2;
    const half = ((x1 - x0) / 2) * factor;
    set(x, [middle - half, middle + half]);
    set(y, [y0, y0 + (y1 - y0) * factor]);
    view.runAsync();
  };
  // Own tooltip: text only, and the nearest point's score, which Vega-Lite looks for elsewhere.
  const tip = document.body.appendChild(Object.assign(document.createElement("dl"), { id: "tip", hidden: true }));
  const tooltip = (handler, event, item, value) => {
    tip.hidden = !value;
    if (!value) return;
    const { score } = item.datum.datum ?? item.datum;
    tip.replaceChildren(...Object.entries({ ...value, score }).flatMap(([name, said]) => [
      Object.assign(document.createElement("dt"), { textContent: name }),
      Object.assign(document.createElement("dd"), { textContent: said }),
    ]));
    const { width, height } = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(8, Math.min(event.clientX + 14, innerWidth - width - 8))}px`;
    tip.style.top = `${event.clientY + 18 + height > innerHeight ? event.clientY - height - 14 : event.clientY + 18}px`;
  };
  addEventListener("scroll", () => { tip.hidden = true; }, { passive: true });
  const draw = async (canvas) => {
    const name = canvas.dataset.chart;
    const options = { mode: "vega-lite", renderer: "svg", actions: false, tooltip };
    const datasets = Object.fromEntries(Object.entries(sources[name]).map(([key, rows]) => [key, rows()]));
    const { view } = await vegaEmbed(canvas, { ...specs[name].spec, datasets }, options);
    state.charts.set(name, view);
    const buttons = canvas.parentElement.querySelector(".zoom");
    const act = zoomed({ view, x: specs[name].x, y: specs[name].y });
    buttons.hidden = false;
    buttons.addEventListener("click", (event) => event.target.dataset.zoom && act(event.target.dataset.zoom));
    fill(name);
  };

  // ---------------------------------------------------------------------- choosing and finding
  const text = (element) => element.textContent.toLowerCase();
  const filterNumbers = () => {
    const family = byId("family").value;
    const words = byId("find").value.trim().toLowerCase();
    let visible = 0;
    for (const row of all(`#every tbody[data-split="${state.split}"] tr`)) {
      const member = family === "headline" ? "headline" in row.dataset : !family || row.dataset.family === family;
      row.hidden = !member || state.hidden.has(+row.dataset.score) || !text(row).includes(words);
      visible += !row.hidden;
    }
    const total = all(`#every tbody[data-split="${state.split}"] tr`).length;
    byId("shown").textContent = `${visible} of ${total} numbers`;
  };
  const show = () => {
    for (const body of all("#every tbody")) body.hidden = +body.dataset.split !== state.split;
    for (const row of all("#glance tbody tr")) row.hidden = state.hidden.has(+row.dataset.score);
    const score = byId("sample-score") ? +byId("sample-score").value : 0;
    for (const pair of all(".case")) {
      pair.hidden = +pair.dataset.split !== state.split || +pair.dataset.score !== score;
      pair.style.display = pair.hidden ? "none" : "";
    }
    filterNumbers();
    for (const name of state.charts.keys()) fill(name);
  };
  const toggle = (chip) => {
    const score = +chip.dataset.score;
    if (!state.hidden.delete(score)) state.hidden.add(score);
    chip.setAttribute("aria-pressed", String(!state.hidden.has(score)));
    show();
  };

  // --------------------------------------------------------------------------------- sorting
  const keyOf = (cell, kind) => {
    const raw = cell.dataset.v ?? cell.textContent.trim();
    if (kind === "text") return raw.toLowerCase();
    const value = parseFloat(raw.replace(/[\u202f,]/g, ""));
    return Number.isNaN(value) ? Infinity : value;
  };
  const sortTable = (table, column, descending) => {
    const heads = all("thead th", table);
    const kind = heads[column].dataset.sort;
    heads.forEach((head) => head.removeAttribute("aria-sort"));
    heads[column].setAttribute("aria-sort", descending ? "descending" : "ascending");
    for (const body of table.tBodies) {
      const rows = Array.from(body.rows).map((row) => [keyOf(row.cells[column], kind), row]);
      // An undefined value stays last in both directions.
      const order = (a, b) => (a === b ? 0 : a === Infinity ? 1 : b === Infinity ? -1 : (a < b) === descending ? 1 : -1);
      rows.sort((a, b) => order(a[0], b[0]));
      body.append(...rows.map((pair) => pair[1]));
    }
  };
  const makeSortable = (table) => {
    all("thead th", table).forEach((head, column) => {
      if (!head.dataset.sort) return;
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => sortTable(table, column, head.getAttribute("aria-sort") === "ascending"));
    });
  };

  // ------------------------------------------------------------------------------------ start
  all("table.sortable").forEach(makeSortable);
  byId("thousand").addEventListener("change", (event) => document.body.classList.toggle("thousand", event.target.checked));
  byId("family").addEventListener("change", filterNumbers);
  byId("find").addEventListener("input", filterNumbers);
  byId("sort-by").addEventListener("change", (event) => event.target.value && sortTable(byId("every"), +event.target.value, false));
  byId("sample-score")?.addEventListener("change", show);
  byId("split")?.addEventListener("change", (event) => { state.split = +event.target.value; show(); });
  all(".chip").forEach((chip) => chip.addEventListener("click", () => toggle(chip)));
  show();
  all(".canvas").forEach(draw);
})();
