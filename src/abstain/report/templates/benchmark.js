(() => {
  "use strict";
  const byId = (id) => document.getElementById(id);
  const all = (selector) => Array.from(document.querySelectorAll(selector));
  const metric = byId("metric");
  // Where a link leads into something folded, it is opened first.
  const reveal = () => {
    const target = byId(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    for (let part = target; part; part = part.parentElement) if (part.tagName === "DETAILS") part.open = true;
    target.scrollIntoView();
  };
  const show = () => {
    for (const view of all(".view")) view.hidden = view.dataset.metric !== metric.value;
  };
  metric.addEventListener("change", show);
  byId("intervals").addEventListener("change", (event) => {
    document.body.classList.toggle("with-intervals", event.target.checked);
  });
  byId("jump").addEventListener("change", (event) => {
    if (event.target.value) location.hash = event.target.value;
    event.target.value = "";
  });
  window.addEventListener("hashchange", reveal);
  all("table.sortable").forEach(sorting.makeSortable);
  byId("controls").hidden = false;
  show();
  reveal();
})();
