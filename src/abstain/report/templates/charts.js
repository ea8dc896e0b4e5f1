(() => {
  "use strict";
  const byId = (id) => document.getElementById(id);
  const { all } = page;
  const read = (id) => JSON.parse(byId(id).textContent);
  const data = read("abstain-data");
  const specs = read("abstain-specs");
  // Without weights, the counts determine coverage and risk.
  for (const { curve } of data.cases) {
    const total = curve.accepted.at(-1);
    curve.coverage ??= curve.accepted.map((count) => count / total);
    curve.selective ??= curve.failures.map((loss, i) => loss / curve.accepted[i]);
    curve.generalized = curve.selective.map((risk, i) => risk * curve.coverage[i]);
  }
  const state = { charts: new Map(), near: new Map() };

  // ------------------------------------------------------------------------- data of a chart
  const visibleCases = () => {
    const [split, hidden] = [Number(page.selected("split") ?? 0), page.hidden("score")];
    return data.cases.filter((c) => c.split === split && !hidden.has(String(c.score)));
  };
  // The switch exists only if some curves have bands.
  const bandSwitch = document.querySelector("[data-switch=bands]");
  const rowsOf = (columns, score) => {
    const names = Object.keys(columns);
    return columns[names[0]].map((_, i) => {
      const row = { score };
      for (const name of names) row[name] = columns[name][i];
      return row;
    });
  };
  const riskRows = (kind) => () => visibleCases().flatMap((c) => {
    const rows = rowsOf(c.curve, data.scores[c.score]).map((row) => ({ ...row, risk: row[kind] }));
    const start = kind === "selective" ? rows[0].risk : 0;
    const points = rows.map((row) => ({ ...row, ...bandText(c.band, kind, row.coverage) }));
    return [{ score: rows[0].score, coverage: 0, risk: start, start: true, band: "", simultaneous: "" }, ...points];
  });
  // The data contain bands of the selective risk; the generalized risk is coverage times selective risk.
  const riskFactor = (kind, coverage) => (kind === "generalized" ? coverage : 1);
  const withBands = () => visibleCases().filter((c) => c.band);
  const bandAreas = (kind, cases) => cases.flatMap((c) => c.band.coverage.map((coverage, i) => ({
    score: data.scores[c.score],
    coverage,
    risk_low: c.band.low[i] * riskFactor(kind, coverage),
    risk_high: c.band.high[i] * riskFactor(kind, coverage),
  })));
  const bandEdges = (kind, cases) => cases.flatMap((c) => ["low_all", "high_all"].flatMap((end) => c.band.coverage
    .map((coverage, i) => ({ score: data.scores[c.score], coverage, end, bound: c.band[end][i] }))
    .filter((row) => row.bound !== null)
    .map((row) => ({ ...row, risk: row.bound * riskFactor(kind, row.coverage) }))));
  const casesWithVisibleBand = (kind) => {
    const near = state.near.get(kind);
    if (near !== undefined) return withBands().filter((c) => data.scores[c.score] === near);
    return bandSwitch?.checked ? withBands() : [];
  };
  // The opacity decreases with the number of bands, because they overlap.
  const bandOpacity = (kind) => Math.min(0.18, Math.max(0.27 / casesWithVisibleBand(kind).length, 0.02));
  const bandSources = (kind) => (bandSwitch ? {
    bands: () => bandAreas(kind, casesWithVisibleBand(kind)),
    edges: () => (casesWithVisibleBand(kind).length === 1 ? bandEdges(kind, casesWithVisibleBand(kind)) : []),
  } : {});
  // The band at one coverage as text, linearly interpolated between the coverages of the band.
  const formatNumber = (value) => (value !== 0 && Math.abs(value) < 1e-4 ? value.toExponential(2) : String(+value.toPrecision(3)));
  const bandText = (band, kind, x) => {
    const after = band ? band.coverage.findIndex((coverage) => coverage >= x) : -1;
    if (after < 0) return { band: "", simultaneous: "" };
    const before = band.coverage[after] === x ? after : after - 1;
    const step = before === after ? 0 : (x - band.coverage[before]) / (band.coverage[after] - band.coverage[before]);
    const boundsText = (...ends) => {
      const values = ends.map((end) => [band[end][before], band[end][after]]);
      if (values.flat().some((value) => value === null || value === undefined)) return "";
      return values.map(([a, b]) => formatNumber((a + step * (b - a)) * riskFactor(kind, x))).join(" to ");
    };
    return { band: boundsText("low", "high"), simultaneous: boundsText("low_all", "high_all") };
  };
  const curveRows = (key) => () => visibleCases().flatMap((c) => (c[key] ? rowsOf(c[key], data.scores[c.score]) : []));
  // Risk of random confidence: the overall risk; for the generalized risk, coverage times it.
  const randomReference = (kind) => () => visibleCases().slice(0, 1).flatMap((c) => [
    { x: 0, y: kind === "selective" ? c.risk : 0 }, { x: 1, y: c.risk },
  ]);
  // The working point at the position of the slider.
  const slider = { score: document.querySelector("[data-slider=score]"), position: document.querySelector("[data-slider=position]") };
  const workingPoint = () => {
    const c = slider.score && visibleCases().find((item) => String(item.score) === slider.score.value);
    return c ? { ...rowsOf(c.curve, data.scores[c.score])[slider.position.value], all: rowsOf(c.curve, "").at(-1), c } : undefined;
  };
  const selectedPoint = (kind) => () => {
    const at = workingPoint();
    return at ? [{ score: at.score, coverage: at.coverage, risk: at[kind] }] : [];
  };
  const riskSources = (kind) => ({ curves: riskRows(kind), reference: randomReference(kind), selected: selectedPoint(kind), ...bandSources(kind) });
  const sources = {
    selective: riskSources("selective"),
    generalized: riskSources("generalized"),
    reliability: { reliability: curveRows("reliability"), reference: () => [{ x: 0, y: 0 }, { x: 1, y: 1 }] },
    cwsa: { curves: curveRows("cwsa") },
    cwsa_plus: { curves: curveRows("cwsa_plus") },
  };
  // The risk of the first few accepted samples is not limited: it would flatten the rest of the curve.
  const maxBeyondStart = (rows, field) => Math.max(...rows.filter((row) => row.coverage >= 0.05).map((row) => row[field]), 0);
  // A very wide band is clipped so that it does not flatten the curves.
  const maxRisk = (kind, rows) => {
    const curves = maxBeyondStart(rows, "risk");
    const bands = bandSwitch?.checked ? maxBeyondStart(bandAreas(kind, withBands()), "risk_high") : 0;
    return Math.max(curves, curves ? Math.min(bands, 1.6 * curves) : bands) || 0.01;
  };

  // ---------------------------------------------------------------------------------- charts
  const refresh = (name) => {
    const view = state.charts.get(name);
    if (!view) return;
    for (const [dataset, rows] of Object.entries(sources[name])) {
      const values = rows();
      view.data(dataset, values);
      if (dataset === "curves" && values.length && "risk" in values[0]) view.signal("top", maxRisk(name, values));
    }
    view.signal("band_opacity", bandOpacity(name)).runAsync();
  };
  // Show only the band of the score under the pointer.
  const hover = (name, score) => {
    const view = state.charts.get(name);
    if (!view || !sources[name].bands || state.near.get(name) === score) return;
    state.near.set(name, score);
    for (const dataset of ["bands", "edges"]) view.data(dataset, sources[name][dataset]());
    view.signal("band_opacity", bandOpacity(name)).runAsync();
  };
  const zoomHandler = (signals) => (how) => {
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
  // A custom tooltip: text only, for the nearest point.
  const tip = document.body.appendChild(Object.assign(document.createElement("dl"), { id: "tip", hidden: true }));
  const tooltip = (chart) => (handler, event, item, value) => {
    tip.hidden = !value;
    const { score, band, simultaneous } = value ? item.datum.datum ?? item.datum : {};
    hover(chart, score);
    if (!value) return;
    const bands = { [`${data.level}, pointwise`]: band, [`${data.level}, simultaneous`]: simultaneous };
    const entries = [...Object.entries({ ...value, score }), ...Object.entries(bands).filter((entry) => entry[1])];
    tip.replaceChildren(...entries.flatMap(([name, text]) => [
      Object.assign(document.createElement("dt"), { textContent: name }),
      Object.assign(document.createElement("dd"), { textContent: text }),
    ]));
    const { width, height } = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(8, Math.min(event.clientX + 14, innerWidth - width - 8))}px`;
    tip.style.top = `${event.clientY + 18 + height > innerHeight ? event.clientY - height - 14 : event.clientY + 18}px`;
  };
  addEventListener("scroll", () => { tip.hidden = true; }, { passive: true });
  const draw = async (canvas) => {
    const name = canvas.dataset.chart;
    // Expressions are interpreted, because the content security policy forbids eval. Only errors are logged, because
    // empty layers are not errors.
    const options = { mode: "vega-lite", renderer: "svg", actions: false, defaultStyle: false, ast: true, logLevel: 1, tooltip: tooltip(name) };
    const datasets = Object.fromEntries(Object.entries(sources[name]).map(([key, rows]) => [key, rows()]));
    const { view } = await vegaEmbed(canvas, { ...specs[name].spec, datasets }, options);
    state.charts.set(name, view);
    const buttons = canvas.parentElement.querySelector(".zoom");
    const act = zoomHandler({ view, x: specs[name].x, y: specs[name].y });
    buttons.hidden = false;
    buttons.addEventListener("click", (event) => event.target.dataset.zoom && act(event.target.dataset.zoom));
    refresh(name);
  };

  // ---------------------------------------------------------------------- table of points
  const riskCell = (risk, ...bands) => {
    const cell = Object.assign(document.createElement("td"), { className: "num", textContent: formatNumber(risk) });
    cell.append(...bands.filter(Boolean).map((text) => Object.assign(document.createElement("small"), { textContent: text })));
    return cell;
  };
  const pointRow = (c, i) => {
    const { coverage, risk } = c.band;
    const row = document.createElement("tr");
    row.append(Object.assign(document.createElement("th"), { scope: "row", className: "name", textContent: data.scores[c.score] }));
    row.append(riskCell(coverage[i]));
    for (const kind of ["selective", "generalized"]) {
      const { band, simultaneous } = bandText(c.band, kind, coverage[i]);
      row.append(riskCell(risk[i] * riskFactor(kind, coverage[i]), band, simultaneous));
    }
    return row;
  };
  const fillPoints = () => byId("points")?.tBodies[0].replaceChildren(...withBands().flatMap((c) => {
    const nearest = (goal) => c.band.coverage.reduce((best, x, i, all) => (Math.abs(x - goal) < Math.abs(all[best] - goal) ? i : best), 0);
    const indices = new Set([0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1].map(nearest));
    return [...indices].map((i) => pointRow(c, i));
  }));

  // --------------------------------------------------------------------- threshold slider
  const formatPercent = (value) => `${formatNumber(100 * value)}%`;
  const element = (kind, text, about = {}) => Object.assign(document.createElement(kind), { textContent: text, ...about });
  const updateGroups = (c, position) => document.querySelector(".groups-at-threshold tbody")?.replaceChildren(...(c.groups ?? []).map((group) => {
    const [accepted, failures] = [group.accepted[position], group.failures[position]];
    const texts = [accepted.toLocaleString("en"), formatPercent(accepted / group.n), accepted ? formatNumber(failures / accepted) : "–"];
    const row = document.createElement("tr");
    row.append(element("th", group.name, { scope: "row" }), ...texts.map((text) => element("td", text, { className: "num" })));
    return row;
  }));
  const updateSlider = () => {
    const at = workingPoint();
    if (!at) return;
    const score = `confidence is at least ${formatNumber(at.threshold)}`;
    const accept = at.probability === undefined ? score : `probability is at least ${formatNumber(at.probability)} (${score})`;
    byId("slider-output").textContent = `Accept if the ${accept}. Coverage: ${formatPercent(at.coverage)}. `
      + `Selective risk: ${formatNumber(at.selective)}. Generalized risk: ${formatNumber(at.generalized)}.`;
    const rows = [[at.accepted, at.failures], [at.all.accepted - at.accepted, at.all.failures - at.failures]];
    all(".at-threshold tbody tr").forEach((row, i) => {
      const [count, loss] = rows[i];
      const values = [count, loss, count ? loss / count : 0];
      values.forEach((value, j) => { row.cells[j + 1].textContent = Number.isInteger(value) && j < 2 ? value.toLocaleString("en") : formatNumber(value); });
    });
    updateGroups(at.c, slider.position.value);
    for (const kind of ["selective", "generalized"]) state.charts.get(kind)?.data("selected", sources[kind].selected()).runAsync();
  };
  const resetSlider = () => {
    if (!slider.score) return;
    const previous = slider.score.value;
    slider.score.replaceChildren(...visibleCases().map((c) => new Option(data.scores[c.score], c.score)));
    if ([...slider.score.options].some((option) => option.value === previous)) slider.score.value = previous;
    const c = visibleCases().find((item) => String(item.score) === slider.score.value);
    const last = c ? c.curve.threshold.length - 1 : 0;
    // The initial position is the largest coverage of at most 80%, until the slider is moved.
    const initial = c ? Math.max(0, c.curve.coverage.filter((coverage) => coverage <= 0.8).length - 1) : 0;
    const moved = slider.position.dataset.moved;
    slider.position.max = last;
    slider.position.value = moved ? Math.round(moved * last) : initial;
    updateSlider();
  };
  slider.position?.addEventListener("input", () => { slider.position.dataset.moved = slider.position.value / (slider.position.max || 1); updateSlider(); });
  slider.score?.addEventListener("change", resetSlider);

  // ------------------------------------------------------------------------------------ start
  page.later.push(() => {
    fillPoints();
    resetSlider();
    for (const name of state.charts.keys()) refresh(name);
  });
  fillPoints();
  resetSlider();
  // Charts of collapsed sections are drawn when they become visible.
  const observer = new IntersectionObserver((entries) => {
    for (const entry of entries.filter((item) => item.isIntersecting)) {
      observer.unobserve(entry.target);
      draw(entry.target);
    }
  }, { rootMargin: "200px" });
  all(".canvas").forEach((canvas) => observer.observe(canvas));
})();
