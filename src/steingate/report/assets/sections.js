// One run in detail.

const MODE_COLORS = ["var(--improve)", "var(--balance)", "var(--recovering)"];
const xScale = (last, width) => ({ map: (v) => v / last, ticks: niceTicks(0, last, width < 420 ? 3 : 5) });
const count = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;

function runDetail(parent, data, view) {
  parent.replaceChildren();
  if (!data.runs.length) return;
  const run = data.runs[view.run];
  html("h2", { text: "One run" }, parent);
  chooser(parent, data, view);
  facts(parent, run, data.modes);
  const stack = html("div", { class: "stack" }, parent);
  curves(html("div", { class: "card" }, stack), run);
  gate(html("div", { class: "card" }, stack), run, data.modes);
  distribution(html("div", { class: "card", id: "distribution" }, stack), run, run.reference, view);
  const grid = html("div", { class: "grid" }, stack);
  worst(html("div", { class: "card" }, grid), run, data.modes);
  reproduce(html("div", { class: "card" }, grid), run);
}

function chooser(parent, data, view) {
  const bar = html("div", { class: "bar chooser" }, parent);
  const move = (by) => { view.run = (view.run + by + data.runs.length) % data.runs.length; view.choose(); };
  if (data.runs.length > 1) html("button", { text: "←", "aria-label": "previous run" }, bar).addEventListener("click", () => move(-1));
  const select = html("select", { id: "choice", "aria-label": "run" }, bar);
  const groups = {};
  data.runs.forEach((run, index) => {
    groups[run.task] ??= html("optgroup", { label: run.task }, select);
    const option = html("option", { value: index, text: `${run.task} · ${run.label} · seed ${run.seed}` }, groups[run.task]);
    option.selected = index === view.run;
  });
  select.addEventListener("change", () => { view.run = +select.value; view.choose(); });
  if (data.runs.length > 1) html("button", { text: "→", "aria-label": "next run" }, bar).addEventListener("click", () => move(1));
}

function facts(parent, run, modes) {
  const row = html("p", { class: "facts" }, parent);
  const fact = (name, value) => { const item = html("span", {}, row); item.append(`${name} `); html("b", { text: value }, item); };
  fact("epochs", run.epochs < run.planned ? `${run.epochs} of ${run.planned}` : `${run.epochs}`);
  fact("steps", stepText(run.steps[run.steps.length - 1]));
  fact("limit", valueText(run.limit) + (run.limit === run.trainedLimit ? "" : `, trained for ${valueText(run.trainedLimit)}`));
  const [episodes, violations, ret, cost] = run.tail;
  if (episodes) {
    fact("last fifth: return", valueText(ret));
    fact("cost", valueText(cost));
    fact("violations", `${violations} in ${count(episodes, "episode")} (${percentText(violations / episodes)})`);
  }
  if (new Set(run.modes).size === 1) return;
  let switches = 0;
  for (let i = 1; i < run.modes.length; i++) switches += run.modes[i] !== run.modes[i - 1];
  fact("switches", `${switches}`);
  for (const [mode, name] of modes.entries()) {
    const fraction = [...run.modes].filter((m) => +m === mode).length / run.modes.length;
    if (fraction) fact(name, `${Math.round(100 * fraction)} %`);
  }
}

function recoveries(p, run) {
  for (let i = 0; i < run.modes.length; ) {
    let end = i + 1;
    while (end < run.modes.length && run.modes[end] === run.modes[i]) end++;
    if (run.modes[i] === "2") shade(p, i * run.perEpoch, end * run.perEpoch, "var(--recover)");
    i = end;
  }
}

function curves(card, run) {
  const c = run.curves, last = run.steps[run.steps.length - 1], x = xScale(last, card.clientWidth);
  const tell = (i) => [stepText(run.steps[i]), `return ${valueText(c.ret[i])}`, `cost ${valueText(c.cost[i])}`, `worst ${valueText(c.worst[i])}`];
  const keys = [{ label: `last ${run.window} episodes`, color: "var(--ink)" }, { label: "this epoch", color: run.color }];
  if (run.modes.includes("2")) keys.push({ label: "recovery", color: "var(--recover)", kind: "box" });
  const r = plot(card, { title: "Return", height: 200, xLabel: "environment steps", x, y: linearScale(...range([c.ret, c.epochRet ?? []])), keys });
  recoveries(r, run);
  if (c.epochRet) line(r, run.steps, c.epochRet, run.color, 1.4, 0.9);
  line(r, run.steps, c.ret, "var(--ink)");
  hover(r, run.steps, tell);
  const top = Math.max(2.1 * run.limit, ...[...c.worst, ...c.high].filter(known)) * 1.08;
  const costKeys = [{ label: `last ${run.window} episodes`, color: "var(--ink)" }, { label: "this epoch", color: run.color }, { label: "most episodes (10–90 %)", color: `${run.color}44`, kind: "box" }, { label: "worst episode", color: run.color, kind: "dot" }, { label: "limit", color: "var(--limit)", kind: "dashed" }];
  const p = plot(card, { title: "Cost", height: 250, xLabel: "environment steps", x, y: costScale(run.limit, top), keys: costKeys });
  recoveries(p, run);
  band(p, run.steps, c.low, c.high, run.color, 0.22);
  if (c.epochCost) line(p, run.steps, c.epochCost, run.color, 1.4, 0.9);
  const size = Math.max(1.1, Math.min(2.6, 300 / run.steps.length));
  c.worst.forEach((v, i) => { if (known(v)) svg("circle", { cx: p.X(run.steps[i]).toFixed(1), cy: p.Y(v).toFixed(1), r: size, opacity: 0.75 }, p.root).style.fill = tint(run.color); });
  line(p, run.steps, c.cost, "var(--ink)");
  limitLine(p, run.limit, `limit ${valueText(run.limit)}`);
  hover(p, run.steps, tell);
  const per = Math.ceil(run.epochs / run.steps.length);
  if (per > 1) html("p", { class: "note", text: `Each point is the mean of up to ${per} epochs; the worst episode is the worst of them all.` }, card);
}

function gate(card, run, modes) {
  const x = xScale(run.steps[run.steps.length - 1], card.clientWidth), g = run.gate, many = new Set(run.modes).size > 1;
  if (g.decision) bound(card, run, x);
  for (const [name, values] of g.schedules) {
    const p = plot(card, { title: `Gate: ${name}`, height: 130, x, y: linearScale(0, 1.08 * Math.max(...values.filter(known)) || 1, 3), xLabel: many ? "" : "environment steps" });
    line(p, run.steps, values, "var(--ink)");
    hover(p, run.steps, (i) => [stepText(run.steps[i]), `${name} ${valueText(values[i])}`]);
  }
  if (many) modeStrip(card, run, modes, x);
  if (!many && !g.decision && !g.schedules.length) card.remove();
  if (card.querySelector(".beyond")) html("p", { class: "note", text: "▲: above the axis; point at it to see the value." }, card);
}

// The bound, with its terms as a stack if it has some.
function bound(card, run, x) {
  const g = run.gate, terms = ["reference", "atoms", "interior"].filter((name) => g[name]);
  const total = run.steps.map((_, i) => Math.max(terms.reduce((a, name) => a + (g[name][i] ?? 0), 0), g.decision[i] ?? 0));
  const at = run.steps.map((_, i) => i).filter((i) => known(g.decision[i])); // some gates evaluate it in some epochs only
  const sorted = at.map((i) => total[i]).sort((a, b) => a - b), budget = (g.budget ?? []).filter(known).pop();
  const top = 1.15 * Math.max(sorted[Math.floor(0.97 * (sorted.length - 1))], 2 * (budget ?? 0));
  const keys = terms.map((name) => ({ label: name === "reference" ? "reference risk" : name, color: `var(--${name})`, kind: "box" }));
  keys.push({ label: terms.length ? "value used by the gate" : "bound on P(cost > limit)", color: "var(--ink)" }, { label: "budget", color: "var(--limit)", kind: "dashed" });
  const p = plot(card, { title: "Gate: bound against the budget", height: 220, x, y: linearScale(0, top), keys });
  let base = run.steps.map(() => 0);
  for (const name of terms) {
    const next = base.map((b, i) => b + (g[name][i] ?? 0));
    steps(p, run.steps, next, base, `var(--${name})`, 0.5);
    base = next;
  }
  stairs(p, at.map((i) => run.steps[i]), at.map((i) => g.decision[i]), "var(--ink)");
  run.steps.forEach((end, i) => { if (total[i] > top) beyond(p, (p.X(i ? run.steps[i - 1] : 0) + p.X(end)) / 2, p.top + 1); });
  if (known(budget)) limitLine(p, budget, `budget ${valueText(budget)}`);
  hover(p, run.steps, (i) => [stepText(run.steps[i]), `${terms.length ? "used" : "bound"} ${valueText(g.decision[i])}`, ...terms.map((name) => `${name} ${valueText(g[name][i])}`)]);
}

function modeStrip(card, run, modes, x) {
  const used = modes.map((label, mode) => ({ label, color: MODE_COLORS[mode], kind: "box", mode })).filter((key) => run.modes.includes(`${key.mode}`));
  const p = plot(card, { height: 60, x, y: { map: (v) => v, ticks: [] }, keys: used, label: "mode of each epoch", xLabel: "environment steps" });
  for (let i = 0; i < run.modes.length; ) {
    let end = i + 1;
    while (end < run.modes.length && run.modes[end] === run.modes[i]) end++;
    shade(p, i * run.perEpoch, end * run.perEpoch, MODE_COLORS[+run.modes[i]]);
    i = end;
  }
}

function distribution(card, run, reference, view) {
  html("h3", { text: `Episode costs${reference.name ? " and reference distribution" : ""}` }, card);
  const bar = html("div", { class: "bar" }, card);
  const buttons = run.phases.map(([name]) => {
    const button = html("button", { text: name }, bar);
    button.addEventListener("click", () => { view.phase = name; view.frame = null; draw(); });
    return button;
  });
  const row = html("div", { class: "bar" }, card);
  html("label", { for: "epoch", text: "epoch" }, row);
  const slider = html("input", { type: "range", id: "epoch", min: 0, max: run.frames.length - 1, step: 1 }, row);
  const output = html("output", { for: "epoch" }, row);
  const place = html("div", {}, card);
  const line = reference.name ? ` Line and marks: reference ${reference.name}.` : "";
  html("p", { class: "note", text: `Bars at the ends: episodes with cost 0 and with cost ${valueText(reference.scale)} or more.${line}` }, card);
  slider.addEventListener("input", () => { view.frame = +slider.value; view.phase = null; draw(); });
  function draw() {
    if (!view.phase && view.frame === null) view.phase = run.phases[run.phases.length > 2 ? 2 : 0][0];
    if (view.phase && !run.phases.some(([name]) => name === view.phase)) view.phase = run.phases[0][0];
    if (view.frame !== null) view.frame = Math.min(view.frame, run.frames.length - 1);
    buttons.forEach((button) => button.setAttribute("aria-pressed", button.textContent === view.phase));
    slider.value = view.frame ?? run.frames.length - 1;
    const chosen = view.frame === null ? run.phases.find(([name]) => name === view.phase) : run.frames[view.frame];
    const counts = unpack(chosen[2], reference.bins);
    const total = counts.reduce((a, b) => a + b, 0);
    const when = view.frame === null ? count(chosen[1], "epoch") : chosen[0] === chosen[1] ? `${chosen[0]}` : `${chosen[0]}–${chosen[1]}`;
    output.textContent = `${when}, ${count(total, "episode")}`;
    place.replaceChildren();
    costBars(place, counts, total, reference, run.limit);
  }
  draw();
}

function unpack(packed, bins) {
  const counts = new Array(2 + bins).fill(0);
  packed.split(",").forEach((text, i) => { counts[i] = Number(text); });
  return counts;
}

function costBars(place, counts, total, reference, limit) {
  const width = Math.max(place.clientWidth, 240), height = 230, top = 26, bottom = 34, atom = 40, gap = 14;
  const box = html("div", { class: "plot" }, place);
  const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": "distribution of episode costs" }, box);
  const floor = height - bottom, room = floor - top, fraction = (n) => (total ? n / total : 0);
  const from = atom + gap, inner = width - 2 * from;
  svg("line", { class: "gridline", x1: 0, x2: width, y1: floor, y2: floor }, root);
  const end = (x, n, mass, color, label) => {
    const h = room * fraction(n);
    svg("rect", { class: "atom", x: x + 4, width: atom - 8, y: floor - h, height: h, rx: 2 }, root).style.fill = color;
    if (mass > 0) svg("line", { x1: x, x2: x + atom, y1: floor - room * mass, y2: floor - room * mass, "stroke-width": 2.4 }, root).style.stroke = "var(--ink)";
    svg("text", { x: x + atom / 2, y: floor - Math.max(h, room * mass) - 5, "text-anchor": "middle", text: total ? `${+(100 * fraction(n)).toFixed(1)} %` : "–" }, root);
    svg("text", { x: x + atom / 2, y: floor + 15, "text-anchor": "middle", text: label }, root);
  };
  end(0, counts[0], reference.zero, "var(--safe)", "no cost");
  end(width - atom, counts[1], reference.one, "var(--alarm)", `≥ ${valueText(reference.scale)}`);
  const heights = counts.slice(2).map(fraction);
  let lastLabel = -Infinity;
  const peak = Math.max(...reference.density.slice(2, -2), 0.02);
  const most = Math.max(peak, Math.min(Math.max(...heights), 5 * peak)) * 1.1;
  const binWidth = inner / reference.bins;
  heights.forEach((v, i) => {
    const h = room * Math.min(v / most, 1);
    const x = from + i * binWidth;
    if (h) svg("rect", { class: "bin", x: x + 0.5, width: Math.max(binWidth - 1, 0.5), y: floor - h, height: h }, root).style.fill = "var(--bars)";
    if (v <= most) return;
    // A bar above the axis is cut, with its height as text where there is room.
    svg("path", { class: "cut", d: `M${x - 1} ${top + 14}l${binWidth + 2} -6`, fill: "none", "stroke-width": 4 }, root).style.stroke = "var(--card)";
    if (x - lastLabel < 34) return;
    lastLabel = x;
    svg("text", { x: Math.max(x + 0.5 * binWidth, 14), y: floor - room - 4, "text-anchor": "middle", text: `${Math.round(100 * v)} %` }, root);
  });
  const n = reference.density.length;
  const points = reference.density.map((v, i) => `${(from + (inner * i) / (n - 1)).toFixed(1)} ${(floor - room * Math.min(v / most, 1)).toFixed(1)}`);
  if (n) svg("path", { class: "curve", d: `M${points.join("L")}`, fill: "none", "stroke-width": 2 }, root).style.stroke = "var(--ink)";
  for (let i = 0; i <= 4; i++) {
    const x = from + (inner * i) / 4;
    svg("text", { x, y: floor + 15, "text-anchor": "middle", text: i === 4 && width < 420 ? "" : valueText((reference.scale * i) / 4) }, root);
  }
  svg("text", { x: from + inner / 2, y: height - 3, "text-anchor": "middle", text: "episode cost" }, root);
  if (limit <= reference.scale * 1.0001) {
    const x = from + (inner * limit) / reference.scale;
    svg("line", { class: "limit", x1: x, x2: x, y1: top - 8, y2: floor }, root);
    svg("text", { class: "limit", x: x + (limit >= reference.scale ? -4 : 4), y: top - 6, "text-anchor": limit >= reference.scale ? "end" : "start", text: "limit" }, root);
  }
}

function worst(card, run, modes) {
  html("h3", { text: "Worst episodes of training" }, card);
  if (!run.worst.length) { html("p", { class: "note", text: "No episode has finished yet." }, card); return; }
  const table = html("table", {}, html("div", { class: "scroll", tabindex: 0 }, card));
  const head = html("tr", {}, html("thead", {}, table));
  for (const name of ["cost", "return", "length", "epoch", "steps", "mode"]) html("th", { text: name, class: name === "mode" ? "word" : "number", scope: "col" }, head);
  const body = html("tbody", {}, table);
  for (const [cost, ret, length, epoch, step, mode] of run.worst) {
    const tr = html("tr", {}, body);
    for (const text of [valueText(cost), valueText(ret), valueText(length), `${epoch}`, stepText(step)]) html("td", { class: "number", text }, tr);
    html("td", { class: "word", text: modes[mode] }, tr);
  }
  if (!run.path.includes(".jsonl.xz/")) html("p", { class: "note path", text: `To render the worst episode of the final policy: steingate render ${run.path} --worst --out worst.mp4` }, card);
}

function reproduce(card, run) {
  html("h3", { text: "Configuration" }, card);
  const bar = html("div", { class: "bar" }, card);
  html("span", { class: "note", text: "To repeat this run, save as run.toml: steingate train --config run.toml" }, bar);
  const text = html("pre", { text: run.toml, tabindex: 0 });
  const copy = html("button", { text: "copy" }, bar);
  copy.addEventListener("click", () => {
    getSelection().selectAllChildren(text);
    copy.textContent = document.execCommand("copy") ? "copied" : "press Ctrl-C";
  });
  card.append(text);
  const more = html("details", {}, card);
  html("summary", { text: "Folder, versions, machine" }, more);
  const made = html("dl", {}, more);
  for (const [name, value] of [["folder", run.path], ...run.versions]) { html("dt", { text: name }, made); html("dd", { text: value }, made); }
}
