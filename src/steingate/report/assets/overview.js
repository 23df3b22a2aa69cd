// Curves of all runs, return against violation rate, and performance profiles.

const METRICS = { return: "return", cost: "cost", violation_rate: "violation rate", cvar: "CVaR 0.9 of the cost" };
const SMOOTHING = [1, 3, 5, 10, 25];
const choice = { metrics: ["return", "cost"], smooth: 1, x: "steps", hidden: new Set(), filter: "" };
const percentText = (v) => `${+(100 * v).toFixed(1)} %`;

function notices(parent, data) {
  parent.replaceChildren();
  if (!data.notices.length) return;
  const card = html("div", { class: "card" }, parent);
  for (const text of data.notices) html("p", { text }, card);
}

// The controls stay while the curves are drawn again, so that they keep the focus.
function overview(parent, data) {
  if (!data.tasks.length) { parent.replaceChildren(); return; }
  if (!parent.querySelector(".controls")) {
    parent.replaceChildren();
    html("h2", { text: "Training" }, parent);
    controls(html("div", { class: "bar controls" }, parent));
    html("div", { class: "curves" }, parent);
  }
  drawCurves(parent.querySelector(".curves"), data);
}

function controls(bar) {
  const again = () => { drawCurves(document.querySelector(".curves"), window.reportData()); frontier(document.getElementById("frontier"), window.reportData()); };
  for (const [key, name] of Object.entries(METRICS)) {
    const button = html("button", { text: name, "aria-pressed": choice.metrics.includes(key), "data-metric": key }, bar);
    button.addEventListener("click", () => {
      const without = choice.metrics.filter((other) => other !== key);
      if (choice.metrics.includes(key) && !without.length) return;
      choice.metrics = choice.metrics.includes(key) ? without : Object.keys(METRICS).filter((other) => other === key || without.includes(other));
      button.setAttribute("aria-pressed", choice.metrics.includes(key));
      again();
    });
  }
  const select = (label, id, options, change) => {
    const list = html("select", { id, "aria-label": label }, bar);
    for (const [value, text] of options) html("option", { value, text }, list);
    list.addEventListener("change", () => { change(list.value); again(); });
  };
  select("smoothing", "smooth", SMOOTHING.map((n) => [n, n === 1 ? "no smoothing" : `mean of ${n} points`]), (value) => { choice.smooth = +value; });
  select("horizontal axis", "axis", [["steps", "over steps"], ["hours", "over wall-clock time"]], (value) => { choice.x = value; });
  const filter = html("input", { type: "search", id: "filter", placeholder: "filter tasks and methods", "aria-label": "filter tasks and methods" }, bar);
  filter.addEventListener("input", () => { choice.filter = filter.value; again(); });
}

const wanted = (task, g) => choice.filter.toLowerCase().split(/\s+/).every((word) => `${task.name} ${g.label}`.toLowerCase().includes(word));

// The mean of a point and those before it, of what is known.
function smoothed(list, size) {
  if (size <= 1) return list;
  return list.map((v, i) => {
    if (!known(v)) return v;
    const part = list.slice(Math.max(0, i - size + 1), i + 1).filter(known);
    return part.reduce((a, b) => a + b, 0) / part.length;
  });
}

function drawCurves(parent, data) {
  parent.replaceChildren();
  const tasks = data.tasks.map((task) => ({ ...task, groups: task.groups.filter((g) => wanted(task, g)) })).filter((task) => task.groups.length);
  if (!tasks.length) { html("p", { class: "note", text: "No task or method matches." }, parent); return; }
  const grid = html("div", { class: "grid" }, parent);
  let hasBands = false;
  // Make all cards first: their width depends on how many there are.
  const cards = tasks.map(() => html("div", { class: "card" }, grid));
  for (const [index, task] of tasks.entries()) {
    const card = cards[index];
    html("h3", { text: task.name }, card);
    legend(card, task.groups.map((g) => ({ label: `${g.label} (${count(g.seeds, "seed")})`, color: g.color, off: choice.hidden.has(g.label), toggle: () => {
      if (!choice.hidden.delete(g.label)) choice.hidden.add(g.label);
      drawCurves(parent, data);
    } })));
    const shown = task.groups.filter((g) => !choice.hidden.has(g.label));
    hasBands ||= shown.some((g) => g.seeds > 1);
    choice.metrics.forEach((key, i) => taskPlot(card, task, shown, key, i === choice.metrics.length - 1));
  }
  const bands = hasBands ? " Shaded: one standard deviation over seeds." : "";
  const smooth = choice.smooth > 1 ? ` Smoothed: mean of the last ${choice.smooth} points.` : "";
  const costs = choice.metrics.some((key) => key === "cost" || key === "cvar") ? " Dashed: limit. The cost axis is logarithmic above twice the limit." : "";
  html("p", { class: "note", text: `Lines: last 100 training episodes, with exploration noise${hasBands ? ", mean over seeds" : ""}.${bands}${smooth}${costs} Click a method in a legend to hide or show it.` }, parent);
}

function taskPlot(card, task, groups, key, last) {
  const perHour = Math.max(0, ...groups.flatMap((g) => g.hours.filter(known))) < 2 ? 60 : 1;
  const series = groups.map((g) => {
    const values = smoothed(g[key], choice.smooth), wide = smoothed(g[`${key}_std`], choice.smooth);
    const edge = (sign, low = -Infinity, high = Infinity) => values.map((v, i) => (known(v) ? Math.min(Math.max(v + sign * (wide[i] ?? 0), low), high) : null));
    const bounds = key === "return" ? [] : [0, key === "violation_rate" ? 1 : Infinity];
    return { ...g, xs: choice.x === "steps" ? g.steps : g.hours.map((v) => (known(v) ? v * perHour : null)), values, low: edge(-1, ...bounds), high: edge(1, ...bounds) };
  }).filter((g) => g.xs.some(known));
  html("div", { class: "axis", text: METRICS[key] }, card);
  if (!series.length) { html("p", { class: "note", text: groups.length ? "These runs have no log of their time." : "All methods are hidden." }, card); return; }
  const end = Math.max(...series.flatMap((g) => g.xs.filter(known)));
  const [low, high] = range(series.flatMap((g) => [g.low, g.high]));
  const most = Math.max(0, ...series.flatMap((g) => g.high.filter(known)));
  const limit = Math.max(...task.limits), costs = key === "cost" || key === "cvar";
  const y = costs ? costScale(limit, most * 1.05) : key === "violation_rate" ? linearScale(0, Math.min(Math.max(1.1 * most, 0.1), 1.02)) : linearScale(low, high);
  const xText = choice.x === "steps" ? stepText : (v) => `${+v.toPrecision(3)} ${perHour === 60 ? "min" : "h"}`;
  const p = plot(card, {
    label: `${METRICS[key]} on ${task.name}`, height: last ? 188 : 172, x: xScale(end, card.clientWidth), y, xText, yText: key === "violation_rate" ? percentText : valueText,
    xLabel: last ? (choice.x === "steps" ? "environment steps" : "wall-clock time of training") : "",
  });
  for (const g of series) if (g.seeds > 1) band(p, g.xs, g.low, g.high, g.color);
  for (const g of series) line(p, g.xs, g.values, g.color);
  if (costs) for (const value of task.limits) limitLine(p, value, `limit ${valueText(value)}`);
  const longest = series.reduce((a, b) => (b.xs.length > a.xs.length ? b : a));
  const nearest = (g, x) => g.xs.reduce((best, v, i) => (known(v) && Math.abs(v - x) < Math.abs(g.xs[best] - x) ? i : best), 0);
  const say = key === "violation_rate" ? (v) => (known(v) ? percentText(v) : "–") : valueText;
  hover(p, longest.xs.filter(known), (i) => {
    const x = longest.xs.filter(known)[i];
    return [xText(x), ...series.map((g) => `${g.label}  ${say(g.values[nearest(g, x)])}`)];
  });
}

// A card per task: return against violation rate; small marks are seeds, large ones medians.
function frontier(parent, data) {
  parent.replaceChildren();
  const tasks = data.tasks.map((task) => ({ ...task, groups: task.groups.filter((g) => g.points.length && wanted(task, g)) })).filter((task) => task.groups.length);
  if (!tasks.length) return;
  html("h2", { text: "Return against violation rate" }, parent);
  const grid = html("div", { class: "grid" }, parent);
  const cards = tasks.map(() => html("div", { class: "card" }, grid));
  for (const [index, task] of tasks.entries()) frontierPlot(cards[index], task);
  const several = tasks.some((task) => task.groups.some((g) => g.points.length > 1));
  const marks = several ? "Small: one seed. Large: median over seeds, with 95 % bootstrap intervals." : "Each mark is one seed.";
  html("p", { class: "note", text: `Episodes of the last fifth of training, with exploration noise. ${marks} Dotted: methods that no other dominates. Better is up and to the left.` }, parent);
}

function frontierPlot(card, task) {
  const groups = task.groups;
  html("h3", { text: task.name }, card);
  legend(card, groups.map((g) => ({ label: g.label, color: g.color, kind: "dot" })));
  html("div", { class: "axis", text: "return" }, card);
  const ends = (axis) => groups.flatMap((g) => [g.points.map((point) => point[axis]), g.medians[axis]]);
  const [low, high] = range(ends(1)), most = Math.min(Math.max(range(ends(0))[1], 0.05), 1.02);
  const x = linearScale(-0.02 * most, most, card.clientWidth < 420 ? 3 : 5);
  const p = plot(card, { label: `return against violation rate on ${task.name}`, height: 300, x, y: linearScale(low, high), xText: percentText, xLabel: "violation rate" });
  const best = notDominated(groups.map((g) => [g.medians[0][0], g.medians[1][0]]));
  const edge = svg("path", { d: best.map(([a, b], i) => `${i ? "L" : "M"}${p.X(a).toFixed(1)} ${p.Y(b).toFixed(1)}`).join(""), fill: "none", "stroke-width": 1.4, "stroke-dasharray": "2 4" }, p.root);
  edge.style.stroke = "var(--soft)";
  for (const g of groups) for (const [a, b, seed] of g.points) mark(p, a, b, 3.2, g.color, 0.5, `${g.label}, seed ${seed}: return ${valueText(b)}, ${valueText(100 * a)} % violations`);
  for (const g of groups) {
    const [[a, left, right], [b, bottom, top]] = g.medians;
    interval(p, left, right, b, b, g.color);
    interval(p, a, a, bottom, top, g.color);
    mark(p, a, b, 6, g.color, 1, `${g.label}, median of ${count(g.points.length, "seed")}: return ${valueText(b)}, ${valueText(100 * a)} % violations`).classList.add("median");
  }
}

function notDominated(points) {
  const dominates = (a, b) => a[0] <= b[0] && a[1] >= b[1] && (a[0] < b[0] || a[1] > b[1]);
  return points.filter((point) => !points.some((other) => dominates(other, point))).sort((a, b) => a[0] - b[0]);
}

// Performance profiles: fraction of runs that score above each threshold.
function profiles(parent, data) {
  parent.replaceChildren();
  const found = data.profiles;
  if (!found) return;
  html("h2", { text: `Over ${found.tasks === 1 ? "the task" : `all ${found.tasks} tasks`}` }, parent);
  const grid = html("div", { class: "grid" }, parent);
  const scores = [["ret", "Return: fraction of runs above each score", "return divided by the best method's mean"], ["safety", "Safety: fraction of runs above each score", "fraction of episodes within the limit"]];
  const cards = scores.map(() => html("div", { class: "card" }, grid));
  let bands = false;
  for (const [index, [key, title, xLabel]] of scores.entries()) {
    const card = cards[index], last = key === "safety" ? 1 : 1.2;
    const end = found.thresholds.filter((t) => t <= last + 1e-9).length, xs = found.thresholds.slice(0, end);
    html("h3", { text: title }, card);
    legend(card, found.methods.map((m) => ({ label: m.label, color: m.color })));
    const p = plot(card, { label: title, height: 230, x: linearScale(0, last, 5), y: linearScale(0, 1.02), xText: valueText, yText: percentText, xLabel });
    for (const m of found.methods) band(p, xs, m[key][1].slice(0, end), m[key][2].slice(0, end), m.color);
    for (const m of found.methods) line(p, xs, m[key][0].slice(0, end), m.color);
    bands ||= found.methods.some((m) => m[key][1].some(known));
    hover(p, xs, (i) => [`above ${valueText(xs[i])}`, ...found.methods.map((m) => `${m.label}  ${percentText(m[key][0][i])} of runs`)]);
  }
  html("p", { class: "note", text: `Higher and further right is better.${bands ? " Shaded: 95 % bootstrap intervals over seeds within tasks." : ""}` }, parent);
  for (const text of found.notes) html("p", { class: "note", text }, parent);
}
