// What the theme leaves out for people with a keyboard or a screen reader.
"use strict";

/** Whatever scrolls sideways can be reached by Tab. */
function reach() {
  for (const box of document.querySelectorAll("pre, .table-wrapper, .highlight")) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  }
}

addEventListener("DOMContentLoaded", () => {
  document.querySelector(".sidebar-drawer")?.setAttribute("aria-label", "Pages");
  document.querySelector(".toc-drawer")?.setAttribute("aria-label", "On this page");
  if (!document.querySelector("h1")) {  // the page of the search
    const heading = document.createElement("h1");
    heading.textContent = document.title.split(" - ")[0];
    document.querySelector("#furo-main-content")?.prepend(heading);
  }
  // the visible text is the better name
  for (const summary of document.querySelectorAll("summary[aria-label]")) summary.removeAttribute("aria-label");
  reach();
});
addEventListener("load", reach);
addEventListener("resize", reach);
document.addEventListener("toggle", reach, true);
