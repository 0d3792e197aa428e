"use strict";
// Without this file the planner works by its form; dropping files and following a rehearsal need it.
const csrf = document.querySelector("meta[name=csrf]").content;

function follow(slider) {
  const field = document.getElementById(slider.dataset.for);
  const stops = slider.dataset.stops.split(" ");
  const place = () => {
    const value = Number(field.value.replaceAll(",", ""));
    let near = 0;
    stops.forEach((stop, at) => { if (Math.abs(Math.log(stop / value)) < Math.abs(Math.log(stops[near] / value))) near = at; });
    slider.value = field.value.trim() === "" ? Math.floor(stops.length / 2) : near;
    slider.classList.toggle("empty", field.value.trim() === "");
    slider.setAttribute("aria-valuetext", field.value.trim() === "" ? "empty" : field.value);
  };
  slider.hidden = false;
  slider.addEventListener("input", (event) => {
    event.stopPropagation();
    field.value = stops[Number(slider.value)];
    field.dispatchEvent(new Event("input", { bubbles: true }));
  });
  field.addEventListener("input", place);
  place();
}

/** Shows the fields that the question has. */
function ask() {
  const kind = document.querySelector("#question [name=question]:checked");
  if (!kind) return;
  document.querySelectorAll("#question [data-of]").forEach((one) => { one.hidden = !one.dataset.of.split(" ").includes(kind.value); });
}

function settled() {
  const refusal = document.querySelector("#answer [data-field]");
  document.querySelectorAll("#question [aria-invalid]").forEach((one) => one.removeAttribute("aria-invalid"));
  const wrong = refusal && document.getElementById(refusal.dataset.field);
  if (wrong && wrong.form) wrong.setAttribute("aria-invalid", "true");
  const told = document.querySelector("#answer [data-said]");
  const said = document.getElementById("said");
  const words = told ? told.dataset.said : "";
  if (said && said.textContent !== words) said.textContent = words;
}

async function send(box, file) {
  const message = document.getElementById(box.dataset.message);
  const bar = box.querySelector("progress");
  const form = new URLSearchParams({ name: file.name });
  message.textContent = "";
  bar.hidden = false;
  try {
    if (file.size > Number(box.dataset.most)) throw new Error(box.dataset.large);
    const answer = await fetch(`${box.dataset.to}?${form}`, { method: "POST", body: file, headers: { "X-CSRF-Token": csrf } });
    const told = await answer.json();
    if (!answer.ok) throw new Error(told.detail);
    location.assign(told.next);
  } catch (error) {
    message.textContent = error instanceof TypeError ? "The server did not answer: is dovetail web still running?" : error.message;
    bar.hidden = true;
  }
}

function receive(box) {
  const input = box.querySelector("input[type=file]");
  input.disabled = false;
  input.addEventListener("change", () => { if (input.files.length) send(box, input.files[0]); });
  box.addEventListener("dragover", (event) => { event.preventDefault(); box.classList.add("over"); });
  box.addEventListener("dragleave", () => box.classList.remove("over"));
  box.addEventListener("drop", (event) => {
    event.preventDefault();
    box.classList.remove("over");
    if (event.dataTransfer.files.length) send(box, event.dataTransfer.files[0]);
  });
}

document.addEventListener("htmx:configRequest", (event) => { event.detail.headers["X-CSRF-Token"] = csrf; });
document.addEventListener("htmx:afterSwap", settled);
document.addEventListener("htmx:responseError", (event) => {
  const said = document.getElementById("said");
  if (said) said.textContent = event.detail.xhr.responseText.slice(0, 200);
});
document.querySelectorAll("input[type=range][data-for]").forEach(follow);
document.querySelectorAll("#question").forEach((form) => form.addEventListener("change", ask));
ask();
document.querySelectorAll(".drop[data-to]").forEach(receive);
document.addEventListener("click", async (event) => {
  const print = event.target.closest("[data-print]");
  const copy = event.target.closest("[data-copy]");
  if (print) window.print();
  if (copy && navigator.clipboard) {
    event.preventDefault();
    await navigator.clipboard.writeText(copy.href);
    copy.textContent = "Link copied";
  }
});
document.querySelectorAll("[data-print]").forEach((one) => { one.hidden = false; });
