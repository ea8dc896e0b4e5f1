// What the theme leaves out: names of its two side columns, and blocks that scroll reached by keyboard.
function named(selector, name) {
  for (const found of document.querySelectorAll(selector)) found.setAttribute("aria-label", name);
}

function reachable() {
  for (const block of document.querySelectorAll("article pre, article .table-wrapper")) {
    if (block.scrollWidth > block.clientWidth) block.tabIndex = 0;
    else block.removeAttribute("tabindex");
  }
}

addEventListener("DOMContentLoaded", () => {
  named("aside.sidebar-drawer", "All pages");
  named("aside.toc-drawer", "On this page");
  reachable();
});
addEventListener("load", reachable);
addEventListener("resize", reachable);
