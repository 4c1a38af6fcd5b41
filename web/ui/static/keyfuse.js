// The dashboard works without this. It keeps pages up to date, and counts down.
"use strict";

// offset is how far this browser's clock is behind the daemon's, in ms.
let offset = 0;

function relative(ms) {
  const ahead = ms >= 0;
  let s = Math.abs(ms) / 1000;
  const parts = [];
  for (const [unit, length] of [["d", 86400], ["h", 3600], ["m", 60], ["s", 1]]) {
    const n = Math.floor(s / length);
    s -= n * length;
    if (n > 0 && parts.length < 2) parts.push(n + unit);
    else if (parts.length > 0) break;
  }
  const text = parts.join("");
  if (text === "") return ahead ? "in less than 1s" : "now";
  return ahead ? "in " + text : text + " ago";
}

function tick() {
  const now = Date.now() + offset;
  for (const el of document.querySelectorAll("time[data-relative]")) {
    const text = relative(Date.parse(el.dateTime) - now);
    if (el.textContent !== text) el.textContent = text;
  }
}

// busy says whether somebody is about to act in a part of the page, which must not
// change under their hands.
function busy(part) {
  return part.contains(document.activeElement) && document.activeElement.matches("input, select, textarea");
}

// update takes over the parts of a newer page that differ. The focus stays where it was.
function update(html) {
  const fresh = new DOMParser().parseFromString(html, "text/html");
  for (const part of fresh.querySelectorAll("[data-part]")) {
    const old = document.getElementById(part.id);
    if (!old || busy(old) || old.dataset.html === part.innerHTML) continue;
    const focused = focusKey(old);
    old.innerHTML = part.innerHTML;
    old.dataset.html = part.innerHTML;
    if (focused) restore(old, focused);
  }
  tick();
}

function focusKey(part) {
  const el = document.activeElement;
  if (!part.contains(el)) return null;
  const form = el.closest("form");
  return form ? { action: form.getAttribute("action"), text: el.textContent } : { href: el.getAttribute("href") };
}

function restore(part, key) {
  const all = key.href ? part.querySelectorAll("a") : part.querySelectorAll("form button");
  for (const el of all) {
    const same = key.href ? el.getAttribute("href") === key.href
      : el.textContent === key.text && el.closest("form").getAttribute("action") === key.action;
    if (same) return el.focus({ preventScroll: true });
  }
}

function follow() {
  if (!document.querySelector("main[data-live]") || !window.EventSource) return;
  const said = document.getElementById("connection");
  const source = new EventSource(location.href);
  source.addEventListener("clock", (e) => { offset = Number(e.data) - Date.now(); });
  source.addEventListener("page", (e) => { said.textContent = ""; update(JSON.parse(e.data)); });
  source.addEventListener("error", () => { said.textContent = "The daemon does not answer; what you see may be old."; });
  addEventListener("pagehide", () => source.close());
}

tick();
setInterval(tick, 250);
follow();
