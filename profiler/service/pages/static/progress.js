// Loads the page anew every few seconds and puts the parts that tell of progress in place of the old ones.
// Without it the page is reloaded by the browser.
"use strict";

const PAUSE_MS = 3000;

// Whether there is more to come.
async function refresh() {
  const response = await fetch(location.href);
  if (!response.ok || response.redirected) return false;
  const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
  for (const part of document.querySelectorAll("[data-progress]")) {
    const next = fresh.getElementById(part.id);
    // What somebody is about to use stays as it is.
    if (next && !part.contains(document.activeElement)) part.innerHTML = next.innerHTML;
  }
  return fresh.querySelector("script[data-live]") !== null;
}

function refreshLater() {
  setTimeout(async () => {
    // A server that is away for a moment comes back.
    if (await refresh().catch(() => true)) refreshLater();
  }, PAUSE_MS);
}

refreshLater();
