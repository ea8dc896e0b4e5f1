(() => {
  "use strict";
  const byId = (id) => document.getElementById(id);
  const { all } = page;
  const read = (id) => JSON.parse(byId(id).textContent);
  const data = read("abstain-data");
  const specs = read("abstain-specs");
  const state = { charts: new Map(), near: new Map() };

  // ------------------------------------------------------------------------- data of a chart
  const shown = () => {
    const [split, hidden] = [Number(page.chosen("split") ?? 0), page.hidden("score")];
    return data.cases.filter((c) => c.split === split && !hidden.has(String(c.score)));
  };
  // The bands are an option where there are some.
  const box = document.querySelector("[data-switch=bands]");
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
    const said = rows.map((row) => ({ ...row, ...bandSaid(c.band, kind, row.coverage) }));
    return [{ score: rows[0].score, coverage: 0, risk: start, start: true, band: "", whole: "" }, ...said];
  });
  // A band is that of the selective risk; the generalized risk is coverage times it.
  const share = (kind, coverage) => (kind === "generalized" ? coverage : 1);
  const withBands = () => shown().filter((c) => c.band);
  const areas = (kind, cases) => cases.flatMap((c) => c.band.coverage.map((coverage, i) => ({
    score: data.scores[c.score],
    coverage,
    risk_low: c.band.low[i] * share(kind, coverage),
    risk_high: c.band.high[i] * share(kind, coverage),
  })));
  const edges = (kind, cases) => cases.flatMap((c) => ["low_all", "high_all"].flatMap((end) => c.band.coverage
    .map((coverage, i) => ({ score: data.scores[c.score], coverage, end, bound: c.band[end][i] }))
    .filter((row) => row.bound !== null)
    .map((row) => ({ ...row, risk: row.bound * share(kind, row.coverage) }))));
  const banded = (kind) => {
    const near = state.near.get(kind);
    if (near !== undefined) return withBands().filter((c) => data.scores[c.score] === near);
    return box?.checked ? withBands() : [];
  };
  // Where all bands lie over each other they are as dark as two.
  const veil = (kind) => Math.min(0.18, Math.max(0.27 / banded(kind).length, 0.02));
  const bandsOf = (kind) => (box ? {
    bands: () => areas(kind, banded(kind)),
    edges: () => (banded(kind).length === 1 ? edges(kind, banded(kind)) : []),
  } : {});
  // In words, at one coverage; between those of the band by a straight line.
  const short = (value) => (value !== 0 && Math.abs(value) < 1e-4 ? value.toExponential(2) : String(+value.toPrecision(3)));
  const bandSaid = (band, kind, x) => {
    const after = band ? band.coverage.findIndex((coverage) => coverage >= x) : -1;
    if (after < 0) return { band: "", whole: "" };
    const before = band.coverage[after] === x ? after : after - 1;
    const step = before === after ? 0 : (x - band.coverage[before]) / (band.coverage[after] - band.coverage[before]);
    const said = (...ends) => {
      const values = ends.map((end) => [band[end][before], band[end][after]]);
      if (values.flat().some((value) => value === null || value === undefined)) return "";
      return values.map(([a, b]) => short((a + step * (b - a)) * share(kind, x))).join(" to ");
    };
    return { band: said("low", "high"), whole: said("low_all", "high_all") };
  };
  const part = (key) => () => shown().flatMap((c) => (c[key] ? rowsOf(c[key], data.scores[c.score]) : []));
  // What accepting at random gives: the risk of all samples, or its share.
  const ignorance = (kind) => () => shown().slice(0, 1).flatMap((c) => [
    { x: 0, y: kind === "selective" ? c.risk : 0 }, { x: 1, y: c.risk },
  ]);
  // The working point that the slider is at, on both charts.
  const dial = { score: document.querySelector("[data-dial=score]"), place: document.querySelector("[data-dial=place]") };
  const dialed = () => {
    const c = dial.score && shown().find((one) => String(one.score) === dial.score.value);
    return c ? { ...rowsOf(c.curve, data.scores[c.score])[dial.place.value], all: rowsOf(c.curve, "").at(-1), c } : undefined;
  };
  const chosenOn = (kind) => () => {
    const at = dialed();
    return at ? [{ score: at.score, coverage: at.coverage, risk: at[kind] }] : [];
  };
  const risky = (kind) => ({ curves: risks(kind), reference: ignorance(kind), chosen: chosenOn(kind), ...bandsOf(kind) });
  const sources = {
    selective: risky("selective"),
    generalized: risky("generalized"),
    reliability: { reliability: part("reliability"), reference: () => [{ x: 0, y: 0 }, { x: 1, y: 1 }] },
    cwsa: { curves: part("cwsa") },
    cwsa_plus: { curves: part("cwsa_plus") },
  };
  // The first few accepted samples make a spike that would flatten the rest of the curve.
  const steady = (rows, field) => Math.max(...rows.filter((row) => row.coverage >= 0.05).map((row) => row[field]), 0);
  // A very wide band is cut rather than letting it flatten the curves.
  const top = (kind, rows) => {
    const curves = steady(rows, "risk");
    const bands = box?.checked ? steady(areas(kind, withBands()), "risk_high") : 0;
    return Math.max(curves, curves ? Math.min(bands, 1.6 * curves) : bands) || 0.01;
  };

  // ---------------------------------------------------------------------------------- charts
  const fill = (name) => {
    const view = state.charts.get(name);
    if (!view) return;
    for (const [dataset, rows] of Object.entries(sources[name])) {
      const values = rows();
      view.data(dataset, values);
      if (dataset === "curves" && values.length && "risk" in values[0]) view.signal("top", top(name, values));
    }
    view.signal("veil", veil(name)).runAsync();
  };
  // The band of the score under the pointer stands alone.
  const hover = (name, score) => {
    const view = state.charts.get(name);
    if (!view || !sources[name].bands || state.near.get(name) === score) return;
    state.near.set(name, score);
    for (const dataset of ["bands", "edges"]) view.data(dataset, sources[name][dataset]());
    view.signal("veil", veil(name)).runAsync();
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
  // Own tooltip: text only, and the words of the nearest point, which Vega-Lite looks for elsewhere.
  const tip = document.body.appendChild(Object.assign(document.createElement("dl"), { id: "tip", hidden: true }));
  const tooltip = (chart) => (handler, event, item, value) => {
    tip.hidden = !value;
    const { score, band, whole } = value ? item.datum.datum ?? item.datum : {};
    hover(chart, score);
    if (!value) return;
    const bands = { [`${data.level} at this coverage`]: band, [`${data.level} for the whole curve`]: whole };
    const said = [...Object.entries({ ...value, score }), ...Object.entries(bands).filter((entry) => entry[1])];
    tip.replaceChildren(...said.flatMap(([name, words]) => [
      Object.assign(document.createElement("dt"), { textContent: name }),
      Object.assign(document.createElement("dd"), { textContent: words }),
    ]));
    const { width, height } = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(8, Math.min(event.clientX + 14, innerWidth - width - 8))}px`;
    tip.style.top = `${event.clientY + 18 + height > innerHeight ? event.clientY - height - 14 : event.clientY + 18}px`;
  };
  addEventListener("scroll", () => { tip.hidden = true; }, { passive: true });
  const draw = async (canvas) => {
    const name = canvas.dataset.chart;
    // Expressions are interpreted: the policy of the page lets no text become code. Only errors are told: a layer that
    // has nothing to draw is none.
    const options = { mode: "vega-lite", renderer: "svg", actions: false, defaultStyle: false, ast: true, logLevel: 1, tooltip: tooltip(name) };
    const datasets = Object.fromEntries(Object.entries(sources[name]).map(([key, rows]) => [key, rows()]));
    const { view } = await vegaEmbed(canvas, { ...specs[name].spec, datasets }, options);
    state.charts.set(name, view);
    const buttons = canvas.parentElement.querySelector(".zoom");
    const act = zoomed({ view, x: specs[name].x, y: specs[name].y });
    buttons.hidden = false;
    buttons.addEventListener("click", (event) => event.target.dataset.zoom && act(event.target.dataset.zoom));
    fill(name);
  };

  // ---------------------------------------------------------------- some points of the curves
  const cellOf = (risk, ...bands) => {
    const cell = Object.assign(document.createElement("td"), { className: "num", textContent: short(risk) });
    cell.append(...bands.filter(Boolean).map((said) => Object.assign(document.createElement("small"), { textContent: said })));
    return cell;
  };
  const pointRow = (c, i) => {
    const { coverage, risk } = c.band;
    const row = document.createElement("tr");
    row.append(Object.assign(document.createElement("th"), { scope: "row", className: "name", textContent: data.scores[c.score] }));
    row.append(cellOf(coverage[i]));
    for (const kind of ["selective", "generalized"]) {
      const { band, whole } = bandSaid(c.band, kind, coverage[i]);
      row.append(cellOf(risk[i] * share(kind, coverage[i]), band, whole));
    }
    return row;
  };
  const fillPoints = () => byId("points")?.tBodies[0].replaceChildren(...withBands().flatMap((c) => {
    const nearest = (goal) => c.band.coverage.reduce((best, x, i, all) => (Math.abs(x - goal) < Math.abs(all[best] - goal) ? i : best), 0);
    const places = new Set([0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1].map(nearest));
    return [...places].map((i) => pointRow(c, i));
  }));

  // ------------------------------------------------------------------- a slider of thresholds
  const share100 = (value) => `${short(100 * value)} %`;
  const element = (kind, text, about = {}) => Object.assign(document.createElement(kind), { textContent: text, ...about });
  const turnGroups = (c, place) => document.querySelector(".dialed-groups tbody")?.replaceChildren(...(c.groups ?? []).map((group) => {
    const [accepted, failures] = [group.accepted[place], group.failures[place]];
    const said = [accepted.toLocaleString("en"), share100(accepted / group.n), accepted ? short(failures / accepted) : "–"];
    const row = document.createElement("tr");
    row.append(element("th", group.name, { scope: "row" }), ...said.map((text) => element("td", text, { className: "num" })));
    return row;
  }));
  const turn = () => {
    const at = dialed();
    if (!at) return;
    byId("dial-said").textContent = `Accept from a confidence of ${short(at.threshold)}: ${share100(at.coverage)} are accepted. `
      + `Risk of the accepted: ${short(at.selective)}; accepted and wrong, of all: ${short(at.generalized)}.`;
    const rows = [[at.accepted, at.failures], [at.all.accepted - at.accepted, at.all.failures - at.failures]];
    all(".dialed tbody tr").forEach((row, i) => {
      const [count, wrong] = rows[i];
      const said = [count, wrong, count ? wrong / count : 0];
      said.forEach((value, j) => { row.cells[j + 1].textContent = Number.isInteger(value) && j < 2 ? value.toLocaleString("en") : short(value); });
    });
    turnGroups(at.c, dial.place.value);
    for (const kind of ["selective", "generalized"]) state.charts.get(kind)?.data("chosen", sources[kind].chosen()).runAsync();
  };
  const offer = () => {
    if (!dial.score) return;
    const before = dial.score.value;
    dial.score.replaceChildren(...shown().map((c) => new Option(data.scores[c.score], c.score)));
    if ([...dial.score.options].some((one) => one.value === before)) dial.score.value = before;
    const c = shown().find((one) => String(one.score) === dial.score.value);
    const last = c ? c.curve.threshold.length - 1 : 0;
    // Where four in five are accepted at most, until somebody moves it.
    const usual = c ? Math.max(0, c.curve.coverage.filter((coverage) => coverage <= 0.8).length - 1) : 0;
    const moved = dial.place.dataset.moved;
    dial.place.max = last;
    dial.place.value = moved ? Math.round(moved * last) : usual;
    turn();
  };
  dial.place?.addEventListener("input", () => { dial.place.dataset.moved = dial.place.value / (dial.place.max || 1); turn(); });
  dial.score?.addEventListener("change", offer);

  // ------------------------------------------------------------------------------------ start
  page.later.push(() => {
    fillPoints();
    offer();
    for (const name of state.charts.keys()) fill(name);
  });
  fillPoints();
  offer();
  all(".canvas").forEach(draw);
})();
