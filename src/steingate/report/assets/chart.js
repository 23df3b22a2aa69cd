"use strict";
// Drawing: plot() makes axes, the other functions add marks.

const SVG = "http://www.w3.org/2000/svg";
const svg = (tag, attributes = {}, parent) => fill(document.createElementNS(SVG, tag), attributes, parent);
const html = (tag, attributes = {}, parent) => fill(document.createElement(tag), attributes, parent);

function fill(node, attributes, parent) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "text") node.textContent = value;
    else node.setAttribute(name, value);
  }
  if (parent) parent.append(node);
  return node;
}

// On a dark page colors are mixed with white.
const tint = (color) => (color.startsWith("#") ? `color-mix(in srgb, ${color} var(--tint), white)` : color);
const known = (value) => value !== null && value !== undefined && Number.isFinite(value);
const stepText = (n) => (n >= 1e6 ? `${+(n / 1e6).toFixed(2)}M` : n >= 1e3 ? `${+(n / 1e3).toFixed(1)}k` : `${n}`);
const valueText = (v) => (known(v) ? `${+v.toPrecision(3)}`.replace("-", "−") : "–");

function range(lists, pad = 0.06) {
  let low = Infinity, high = -Infinity;
  for (const list of lists) for (const v of list) if (known(v)) { low = Math.min(low, v); high = Math.max(high, v); }
  if (low > high) return [0, 1];
  const room = (high - low) * pad || Math.max(Math.abs(high) * pad, 0.5);
  return [low - room, high + room];
}

function niceTicks(low, high, count) {
  const raw = (high - low) / Math.max(count, 1);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].find((m) => m * power >= raw * 0.999) * power;
  const ticks = [];
  for (let t = Math.ceil(low / step - 1e-9) * step; t <= high + step * 1e-9; t += step) ticks.push(+t.toPrecision(12));
  return ticks;
}

// Linear up to twice the limit, logarithmic above.
function costScale(limit, top) {
  const bend = 2 * limit || 1; // a limit of 0 has the axis of costs that are whole numbers
  if (top <= bend * 1.05) return { map: (v) => v / (bend * 1.05), ticks: [0, limit, bend] };
  const linear = 0.62, span = Math.log(top / bend);
  const map = (v) => (v <= bend ? (linear * v) / bend : linear + ((1 - linear) * Math.log(v / bend)) / span);
  const ticks = [0, limit, bend];
  const factor = span > Math.log(12) ? 4 : 2;
  for (let t = bend * factor; t < top * 0.98; t *= factor) ticks.push(t);
  return { map, ticks };
}

function linearScale(low, high, count = 4) {
  return { map: (v) => (v - low) / (high - low), ticks: niceTicks(low, high, count) };
}

function plot(parent, { title, height, x, y, keys = [], xText = stepText, yText = valueText, xLabel = "", label = title }) {
  if (title) html("h3", { text: title }, parent);
  if (keys.length) legend(parent, keys);
  const box = html("div", { class: "plot" }, parent);
  const width = Math.max(parent.clientWidth - paddingOf(parent), 240);
  const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": label }, box);
  const left = 46, right = 10, top = 8, bottom = xLabel ? 38 : 22;
  const X = (v) => left + x.map(v) * (width - left - right);
  const Y = (v) => top + (1 - Math.min(Math.max(y.map(v), -0.02), 1.02)) * (height - top - bottom);
  const back = svg("g", {}, root);
  for (const t of y.ticks) {
    svg("line", { class: "gridline", x1: left, x2: width - right, y1: Y(t), y2: Y(t) }, root);
    svg("text", { x: left - 7, y: Y(t) + 4, "text-anchor": "end", text: yText(t) }, root);
  }
  for (const t of x.ticks) {
    const anchor = X(t) > width - right - 20 ? "end" : "middle";
    svg("text", { x: X(t), y: height - bottom + 17, "text-anchor": anchor, text: xText(t) }, root);
  }
  if (xLabel) svg("text", { class: "label", x: (left + width - right) / 2, y: height - 5, "text-anchor": "middle", text: xLabel }, root);
  return { box, root, back, X, Y, width, height, left, right, top, bottom };
}

function paddingOf(node) {
  const style = getComputedStyle(node);
  return parseFloat(style.paddingLeft) + parseFloat(style.paddingRight);
}

function legend(parent, keys) {
  const row = html("div", { class: "legend" }, parent);
  for (const { label, color, kind = "line", toggle = null, off = false } of keys) {
    const key = html(toggle ? "button" : "span", { class: off ? "key off" : "key" }, row);
    if (toggle) { key.setAttribute("aria-pressed", !off); key.addEventListener("click", toggle); }
    const mark = svg("svg", { width: 16, height: 12, "aria-hidden": "true" }, key);
    if (kind === "line" || kind === "dashed") {
      const line = svg("line", { x1: 0, x2: 16, y1: 6, y2: 6, "stroke-width": 2.2, "stroke-dasharray": kind === "dashed" ? "5 3" : "none" }, mark);
      line.style.stroke = tint(color);
    } else if (kind === "dot") svg("circle", { cx: 8, cy: 6, r: 3 }, mark).style.fill = tint(color);
    else svg("rect", { x: 2, y: 1, width: 12, height: 10, rx: 2 }, mark).style.fill = tint(color);
    html("span", { text: label }, key);
  }
}

function line(p, xs, ys, color, width = 1.8, opacity = 1) {
  let path = "", pen = "M";
  ys.forEach((v, i) => {
    if (!known(v)) { pen = "M"; return; }
    path += `${pen}${p.X(xs[i]).toFixed(1)} ${p.Y(v).toFixed(1)}`;
    pen = "L";
  });
  const mark = svg("path", { d: path, fill: "none", "stroke-width": width, "stroke-linejoin": "round", opacity, class: "curve" }, p.root);
  mark.style.stroke = tint(color);
  if (ys.filter(known).length === 1) {
    const i = ys.findIndex(known);
    svg("circle", { cx: p.X(xs[i]), cy: p.Y(ys[i]), r: 3 }, p.root).style.fill = tint(color);
  }
  return mark;
}

function band(p, xs, low, high, color, opacity = 0.16) {
  let start = 0;
  while (start < xs.length) {
    while (start < xs.length && !(known(low[start]) && known(high[start]))) start++;
    let end = start;
    while (end < xs.length && known(low[end]) && known(high[end])) end++;
    if (end - start > 1) {
      const up = [], down = [];
      for (let i = start; i < end; i++) {
        up.push(`${p.X(xs[i]).toFixed(1)} ${p.Y(high[i]).toFixed(1)}`);
        down.unshift(`${p.X(xs[i]).toFixed(1)} ${p.Y(low[i]).toFixed(1)}`);
      }
      svg("path", { d: `M${up.join("L")}L${down.join("L")}Z`, opacity }, p.root).style.fill = tint(color);
    }
    start = end;
  }
}

// Stacked steps: the value of an epoch spans from the end of the epoch before to its own end.
function steps(p, xs, ys, base, color, opacity) {
  let path = "";
  ys.forEach((v, i) => {
    if (!known(v)) return;
    const x0 = p.X(i ? xs[i - 1] : 0), x1 = p.X(xs[i]), b = p.Y(base[i]);
    path += `M${x0.toFixed(1)} ${b.toFixed(1)}V${p.Y(v).toFixed(1)}H${x1.toFixed(1)}V${b.toFixed(1)}Z`;
  });
  svg("path", { d: path, opacity }, p.root).style.fill = tint(color);
}

function stairs(p, xs, ys, color, width = 1.4) {
  let path = "", pen = "M";
  ys.forEach((v, i) => {
    if (!known(v)) { pen = "M"; return; }
    path += `${pen}${p.X(i ? xs[i - 1] : 0).toFixed(1)} ${p.Y(v).toFixed(1)}H${p.X(xs[i]).toFixed(1)}`;
    pen = "L";
  });
  svg("path", { d: path, fill: "none", "stroke-width": width, class: "curve" }, p.root).style.stroke = tint(color);
}

// A point with a title for pointers and screen readers.
function mark(p, x, y, size, color, opacity, title) {
  const dot = svg("circle", { class: "mark", cx: p.X(x).toFixed(1), cy: p.Y(y).toFixed(1), r: size, opacity }, p.root);
  dot.style.fill = tint(color);
  svg("title", { text: title }, dot);
  return dot;
}

function interval(p, x0, x1, y0, y1, color) {
  if (![x0, x1, y0, y1].every(known)) return;
  svg("line", { class: "interval", x1: p.X(x0), x2: p.X(x1), y1: p.Y(y0), y2: p.Y(y1), "stroke-width": 1.8 }, p.root).style.stroke = tint(color);
}

// A mark at the upper edge for values above the axis.
function beyond(p, x, y) {
  svg("path", { class: "beyond", d: `M${x.toFixed(1)} ${y}l4 6h-8z` }, p.root);
}

function limitLine(p, value, text) {
  const y = p.Y(value);
  svg("line", { class: "limit", x1: p.left, x2: p.width - p.right, y1: y, y2: y }, p.root);
  svg("text", { class: "limit", x: p.width - p.right, y: y - 4, "text-anchor": "end", text }, p.root);
}

function shade(p, from, to, color) {
  const x = p.X(from);
  svg("rect", { class: "shade", x, width: Math.max(p.X(to) - x, 0.5), y: p.top, height: p.height - p.top - p.bottom }, p.back).style.fill = tint(color);
}

// Show the lines of text(index) for the point under the pointer; xs are the positions of the points.
function hover(p, xs, textLines) {
  const cursor = svg("line", { class: "cursor", y1: p.top, y2: p.height - p.bottom }, p.root);
  const tip = html("div", { class: "tip" }, p.box);
  const hide = () => { cursor.style.visibility = tip.style.visibility = "hidden"; };
  p.box.addEventListener("pointerleave", hide);
  p.box.addEventListener("pointermove", (event) => {
    const at = event.clientX - p.box.getBoundingClientRect().left;
    let best = 0;
    xs.forEach((v, i) => { if (Math.abs(p.X(v) - at) < Math.abs(p.X(xs[best]) - at)) best = i; });
    const x = p.X(xs[best]);
    cursor.setAttribute("x1", x);
    cursor.setAttribute("x2", x);
    tip.replaceChildren(...textLines(best).map((text) => html("div", { text })));
    cursor.style.visibility = tip.style.visibility = "visible";
    tip.style.top = `${p.top + 4}px`;
    tip.style.left = `${Math.max(0, x + 12 + tip.offsetWidth > p.width ? x - 12 - tip.offsetWidth : x + 12)}px`;
  });
}
