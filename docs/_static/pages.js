// Improves the accessibility of the theme: labels the two sidebars, and makes scrollable blocks reachable by keyboard.
function setLabel(selector, label) {
  for (const element of document.querySelectorAll(selector)) element.setAttribute("aria-label", label);
}

function makeScrollableBlocksFocusable() {
  for (const block of document.querySelectorAll("article pre, article .table-wrapper")) {
    if (block.scrollWidth > block.clientWidth) block.tabIndex = 0;
    else block.removeAttribute("tabindex");
  }
}

addEventListener("DOMContentLoaded", () => {
  setLabel("aside.sidebar-drawer", "All pages");
  setLabel("aside.toc-drawer", "On this page");
  makeScrollableBlocksFocusable();
});
addEventListener("load", makeScrollableBlocksFocusable);
addEventListener("resize", makeScrollableBlocksFocusable);
