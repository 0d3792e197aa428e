const live = document.getElementById("live");
const state = document.getElementById("state");
let shown = "";
async function refresh() {
  try {
    const answer = await fetch("live", { cache: "no-store" });
    if (!answer.ok) throw new Error(String(answer.status));
    const html = (await answer.json()).html;
    if (html !== shown) { live.innerHTML = html; shown = html; }
    state.textContent = "live"; state.classList.remove("lost");
  } catch (_) {
    state.textContent = "connection lost, trying again"; state.classList.add("lost");
  }
}
setInterval(() => { if (!document.hidden) refresh(); }, 5000);
document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh(); });
