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

// moved is when the pointer was last moved.
let moved = 0;
addEventListener("pointermove", () => { moved = Date.now(); });

// busy says whether somebody is about to act in a part of the page, which must not
// change under their hands: a row that moves up puts another one's button there.
function busy(part) {
  if (part.contains(document.activeElement) && document.activeElement.matches("input, select, textarea")) return true;
  return part.querySelector("button:active") !== null || Date.now() - moved < 3000 && part.querySelector(":is(tr, .actions):hover button") !== null;
}

// waiting is the newest page, while a part of it could not be taken over.
let waiting = null;

// update takes over the parts of a newer page that differ. The focus, and how far a
// table is scrolled, stay as they were.
function update(html) {
  waiting = null;
  const fresh = new DOMParser().parseFromString(html, "text/html");
  for (const part of fresh.querySelectorAll("[data-part]")) {
    const old = document.getElementById(part.id);
    if (!old || old.dataset.html === part.innerHTML) continue;
    if (busy(old)) {
      waiting = html;
      continue;
    }
    const focused = focusKey(old);
    const scrolled = [...old.querySelectorAll(".scroll")].map((el) => el.scrollLeft);
    old.innerHTML = part.innerHTML;
    old.dataset.html = part.innerHTML;
    old.querySelectorAll(".scroll").forEach((el, i) => { el.scrollLeft = scrolled[i] || 0; });
    if (focused) restore(old, focused);
  }
  tick();
}

// focusKey tells what has the focus from all else in a part: a link by where it leads, a
// button by its whole form, for the forms of all rows may have one action.
function focusKey(part) {
  const el = document.activeElement;
  if (!part.contains(el)) return null;
  const form = el.closest("form");
  return form ? { form: form.outerHTML } : { href: el.getAttribute("href") };
}

function restore(part, key) {
  for (const el of part.querySelectorAll(key.form ? "form button" : "a")) {
    const same = key.form ? el.closest("form").outerHTML === key.form : el.getAttribute("href") === key.href;
    if (same) return el.focus({ preventScroll: true });
  }
}

function say(text) {
  document.getElementById("connection").textContent = text;
}

// source is what follows the page; null while nobody looks at it, for a browser has few
// connections to a host.
let source = null;

function follow() {
  if (document.hidden || !document.querySelector("main[data-live]")) return;
  if (source && source.readyState !== EventSource.CLOSED) return;
  source = new EventSource(location.href);
  source.addEventListener("clock", (e) => { offset = Number(e.data) - Date.now(); });
  source.addEventListener("page", (e) => { say(""); update(JSON.parse(e.data)); });
  source.addEventListener("stale", () => say("The daemon can't read what is new; what you see may be old."));
  source.addEventListener("error", () => say("Not connected to the daemon; what you see may be old."));
}

function leave() {
  if (source) source.close();
  source = null;
}

document.addEventListener("visibilitychange", () => document.hidden ? leave() : follow());
addEventListener("pagehide", leave);
addEventListener("pageshow", follow);
setInterval(follow, 30000); // who was refused asks again

document.documentElement.classList.add("scripts");
tick();
setInterval(() => waiting ? update(waiting) : tick(), 250);
follow();
