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

  all("table.sortable").forEach(sorting.makeSortable);
  show();
})();
