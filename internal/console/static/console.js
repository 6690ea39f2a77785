// What pages gain where scripts run; without them everything works as well.
"use strict";

// A live page's content is read anew every five seconds while it is seen and nothing in it has the keyboard.
const live = document.querySelector("main[data-live]");
if (live) {
  setInterval(async () => {
    if (document.hidden || live.contains(document.activeElement) || live.querySelector("details[open]")) return;
    try {
      const answer = await fetch(live.dataset.live, { headers: { "X-Daybook-Live": "1" } });
      if (!answer.ok || answer.redirected) return;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const fresh = page.querySelector("main");
      if (fresh) live.replaceChildren(...fresh.childNodes);
    } catch { /* the server is away: what is shown stays */ }
  }, 5000);
}
