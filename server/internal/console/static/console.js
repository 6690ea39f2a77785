// What pages gain where scripts run; without them everything works as well.
"use strict";

// Times tick: they are said as the server says them, by the server's clock.
const ahead = Date.parse(document.body.dataset.now) - Date.now();
function ago(then) {
  const d = Date.now() + ahead - then, s = Math.floor(Math.abs(d) / 1000), m = Math.floor(s / 60), h = Math.floor(m / 60);
  if (s < 1) return "now";
  const text = s < 60 ? `${s} s` : m < 60 ? `${m} min` : h < 24 ? `${h} h ${m % 60} min` : `${Math.floor(h / 24)} d ${h % 24} h`;
  return d > 0 ? `${text} ago` : `in ${text}`;
}
function tick() {
  for (const t of document.querySelectorAll("time[datetime]")) {
    const text = ago(Date.parse(t.dateTime));
    if (t.textContent !== text) t.textContent = text;
  }
}
setInterval(tick, 1000);

// Copy buttons show where the clipboard can be written.
function showCopy() {
  if (navigator.clipboard) for (const b of document.querySelectorAll("button[data-copy][hidden]")) b.hidden = false;
}
document.addEventListener("click", async (e) => {
  const b = e.target.closest("button[data-copy]");
  if (!b) return;
  await navigator.clipboard.writeText(b.dataset.copy);
  b.textContent = "Copied";
  setTimeout(() => { b.textContent = "Copy"; }, 1500);
});
showCopy();

// What an address leads to is open.
function openTarget() {
  const it = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (it && it.localName === "details" && !it.open) { it.open = true; it.scrollIntoView(); }
}
window.addEventListener("hashchange", openTarget);
openTarget();

// What is wider or longer than its place is scrolled with the keyboard as well.
function reachScrolled() {
  for (const s of document.querySelectorAll(".scroll, .error, pre")) {
    if (s.scrollWidth > s.clientWidth || s.scrollHeight > s.clientHeight) { s.tabIndex = 0; s.setAttribute("role", "group"); s.setAttribute("aria-label", s.querySelector("table") ? "Table" : "Text"); }
    else for (const name of ["tabindex", "role", "aria-label"]) s.removeAttribute(name);
  }
}
window.addEventListener("resize", reachScrolled);
reachScrolled();

// become makes an element what another one is, and leaves alone what is the same already: so the keyboard's place, the selection, what is
// typed, opened and scrolled stays.
function become(now, next) {
  for (const a of [...now.attributes]) if (!next.hasAttribute(a.name) && a.name !== "open") now.removeAttribute(a.name);
  for (const a of next.attributes) if (now.getAttribute(a.name) !== a.value && !(a.name === "hidden" && now.dataset.copy)) now.setAttribute(a.name, a.value);
  const have = [...now.childNodes], want = [...next.childNodes];
  want.forEach((w, i) => {
    const h = have[i];
    if (!h) now.append(w);
    else if (h.nodeType !== w.nodeType || h.nodeName !== w.nodeName || h.id !== w.id) h.replaceWith(w);
    else if (h.nodeType !== Node.ELEMENT_NODE) { if (h.data !== w.data) h.data = w.data; }
    else if (!h.isEqualNode(w)) become(h, w);
  });
  have.slice(want.length).forEach((h) => h.remove());
}

// A live page's content is read anew every five seconds while it is seen, until that is paused.
const live = document.querySelector("[data-live]");
if (live) {
  const bar = document.createElement("p"), state = document.createElement("span"), pause = document.createElement("button");
  bar.className = "live"; state.setAttribute("role", "status"); pause.type = "button"; pause.className = "quiet"; pause.textContent = "Pause"; state.textContent = "Live";
  bar.append(state, pause); live.before(bar);
  let paused = false, asking = false;
  const show = (text, tone) => { if (state.textContent !== text) state.textContent = text; bar.dataset.state = tone; };
  show("Live", "on");
  pause.addEventListener("click", () => {
    paused = !paused; pause.textContent = paused ? "Go on" : "Pause";
    show(paused ? "Paused" : "Live", paused ? "off" : "on");
    if (!paused) refresh();
  });
  async function refresh() {
    if (paused || asking || document.hidden || live.querySelector("form :focus, details.confirm[open]")) return;
    asking = true;
    try {
      const answer = await fetch(live.dataset.live, { headers: { "X-Daybook-Live": "1" } });
      if (answer.redirected) { show("Signed out: reload the page", "bad"); return; }
      if (!answer.ok) throw new Error(answer.status);
      const page = new DOMParser().parseFromString(`<div id="content">${await answer.text()}</div>`, "text/html").body.firstChild;
      for (const name of live.getAttributeNames()) page.setAttribute(name, live.getAttribute(name));
      if (!paused) { become(live, page); tick(); showCopy(); reachScrolled(); show("Live", "on"); }
    } catch { show("The server does not answer: this is from before", "bad"); } finally { asking = false; }
  }
  setInterval(refresh, 5000);
  document.addEventListener("visibilitychange", refresh);
}
