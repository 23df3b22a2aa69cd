// Monitors: a live page requests monitors.json and draws a card for each state file.

const MONITOR_COLORS = { certified: "#2a9d8f", undecided: "#e08e1b", drift: "#d1495b", unsafe: "#d1495b" };

function monitorsSection(entries) {
  let parent = document.getElementById("monitors");
  if (!parent) {
    parent = html("section", { id: "monitors", "aria-label": "Monitors" });
    document.querySelector("main").prepend(parent);
  }
  parent.replaceChildren();
  if (!entries.length) return;
  html("h2", { text: "Monitors" }, parent);
  for (const entry of entries) monitorCard(html("div", { class: "card" }, parent), entry);
}

function monitorCard(card, entry) {
  html("h3", { text: entry.name }, card);
  if (entry.problem) { html("p", { class: "note", text: entry.problem }, card); return; }
  const row = html("p", { class: "facts" }, card);
  const fact = (name, value) => { const item = html("span", {}, row); item.append(`${name} `); return html("b", { text: value }, item); };
  fact("state", entry.state).setAttribute("data-state", entry.state);
  fact("episodes", stepText(entry.episodes));
  if (entry.counted < entry.episodes) fact("clusters", stepText(entry.counted));
  fact("violations", stepText(entry.violations));
  fact("limit", valueText(entry.limit));
  fact("bound", valueText(entry.bound));
  fact("budget", valueText(entry.budget));
  fact("CVaR 10 % ≤", valueText(entry.cvar_bound));
  if (entry.shift) fact("shift ≤", valueText(entry.shift.total_variation));
  fact("drift", `${valueText(entry.drift_evidence)} of ${stepText(entry.run_length)}`);
  if (entry.cost_drift_evidence) fact("drift of costs", `${valueText(entry.cost_drift_evidence)} of ${stepText(entry.run_length)}`);
  html("p", { class: "note", text: entry.summary }, card);
  if (entry.trace.length < 2) return;
  const xs = entry.trace.map(([n]) => n), first = Math.log(xs[0]), span = Math.log(xs[xs.length - 1]) - first;
  const ticks = [1, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8].filter((t) => t >= xs[0] && t <= xs[xs.length - 1]);
  const top = Math.min(1, Math.max(3 * entry.budget, ...entry.trace.slice(-40).map(([, , bound]) => bound)));
  const color = MONITOR_COLORS[entry.state];
  const p = plot(card, {
    title: "Bound on P(cost > limit)", height: 170,
    x: { map: (n) => (Math.log(n) - first) / span, ticks }, y: linearScale(0, top * 1.05),
    keys: [{ label: "bound", color }, { label: "observed rate", color: "var(--soft)" }],
  });
  const shown = (list) => list.map((v) => (v > top * 1.05 ? null : v));
  line(p, xs, shown(entry.trace.map(([, seen]) => seen)), "var(--soft)", 1.2);
  line(p, xs, shown(entry.trace.map(([, , bound]) => bound)), color);
  limitLine(p, entry.budget, `budget ${valueText(entry.budget)}`);
}

async function requestMonitors() {
  try {
    const answer = await fetch("monitors.json", { cache: "no-cache" });
    const text = answer.ok ? await answer.text() : requestMonitors.last;
    if (text !== requestMonitors.last) monitorsSection(JSON.parse(requestMonitors.last = text).monitors);
  } catch (error) { /* the status line shows that the server is not reachable */ }
  setTimeout(requestMonitors, poll);
}

if (poll) requestMonitors();
