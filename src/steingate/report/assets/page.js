// Draws the sections, keeps the chosen run, and requests new data on a live page.

const view = { run: 0, phase: null, frame: null, choose: () => { location.replace(`#run=${encodeURIComponent(chosenPath())}`); drawRun(); } };
const section = (id) => document.getElementById(id);
const poll = +document.documentElement.dataset.poll;
let data = JSON.parse(section("data").textContent);

const chosenPath = () => (data && data.runs.length ? data.runs[view.run].path : "");
const drawRun = () => { runDetail(section("run"), data, view); scrollHints(); };
window.reportData = () => data;

function draw() {
  if (!data) return;
  status(`${count(data.runs.length, "run")}${data.skipped.length ? `, ${data.skipped.length} skipped` : ""}`);
  notices(section("notices"), data);
  overview(section("overview"), data);
  frontier(section("frontier"), data);
  if (!data.runs.length) html("p", { class: "empty", text: poll ? "No run has finished an epoch yet. This page updates itself." : "There is no run to show." }, section("overview"));
  profiles(section("profiles"), data);
  drawRun();
  skipped(section("skipped"));
}

// Add a hint above each table that is wider than the screen.
function scrollHints() {
  for (const box of document.querySelectorAll(".scroll")) {
    const more = box.scrollWidth > box.clientWidth + 1, hint = box.previousElementSibling;
    if (hint && hint.classList.contains("hint")) hint.remove();
    if (more) box.before(html("p", { class: "hint", text: "scroll sideways →" }));
  }
}

function skipped(parent) {
  parent.replaceChildren();
  if (!data.skipped.length) return;
  html("h2", { text: "Skipped runs" }, parent);
  const list = html("dl", { class: "card" }, parent);
  for (const [path, reason] of data.skipped) { html("dt", { class: "path", text: path }, list); html("dd", { text: reason }, list); }
}

function status(text, lost = false) {
  const line = section("status");
  line.replaceChildren();
  if (poll) html("span", { class: lost ? "dot lost" : "dot" }, line);
  line.append(poll ? `${lost ? "not reachable" : "live"} · ${text}` : text);
}

async function requestData() {
  try {
    const answer = await fetch("data.json", { cache: "no-cache" });
    if (!answer.ok) throw new Error(`${answer.status}`);
    const text = await answer.text();
    if (text !== requestData.last) {
      const path = chosenPath();
      requestData.last = text;
      data = JSON.parse(text);
      view.run = runAt(path || wantedPath());
      const place = [scrollX, scrollY];
      section("tables").innerHTML = data.tables.join("");
      draw();
      scrollTo(...place);
    } else status(`${count(data.runs.length, "run")}${data.skipped.length ? `, ${data.skipped.length} skipped` : ""}`);
  } catch (error) {
    status("showing the last data", true);
  }
  setTimeout(requestData, poll);
}

function wantedPath() {
  const found = /^#run=(.+)$/.exec(location.hash);
  return found ? decodeURIComponent(found[1]) : "";
}

// Index of the run with this path; else the first run with a bound.
function runAt(path) {
  const same = data.runs.findIndex((run) => run.path === path);
  return same >= 0 ? same : Math.max(data.runs.findIndex((run) => run.gate.decision), 0);
}

if (data) view.run = runAt(wantedPath());
draw();
if (poll) requestData();

let width = innerWidth, pending = 0;
addEventListener("resize", () => {
  if (innerWidth === width) return;
  width = innerWidth;
  clearTimeout(pending);
  pending = setTimeout(draw, 120);
});
