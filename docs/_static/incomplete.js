// The figure of "Why incomplete tests mislead". Its numbers are a grid that owkg.theory computed; nothing is fetched.
"use strict";

// The probability that a standard normal number is below x: a continued fraction in the tails, a series between.
function below(x) {
  const y = Math.abs(x);
  const density = Math.exp((-y * y) / 2) / Math.sqrt(2 * Math.PI);
  let upper;
  if (y > 3) {
    let part = y;
    for (let k = 60; k > 0; k--) part = y + k / part;
    upper = density / part;
  } else {
    let term = y;
    let sum = y;
    for (let k = 1; k < 80; k++) {
      term *= (y * y) / (2 * k + 1);
      sum += term;
    }
    upper = 0.5 - density * sum;
  }
  return x > 0 ? 1 - upper : upper;
}

function incomplete(root) {
  const grid = JSON.parse(root.querySelector("script").textContent);
  const sliders = Object.fromEntries([...root.querySelectorAll("input")].map((one) => [one.dataset.name, one]));
  const svg = root.querySelector("svg");
  const sizes = [grid.strength, grid.sparsity, grid.answers, grid.correlation].map((axis) => axis.length);
  const independent = grid.correlation.indexOf(0);
  const colours = ["#0072b2", "#d55e00"];

  const at = (values, l, s, n, c) => values[((l * sizes[1] + s) * sizes[2] + n) * sizes[3] + c];
  const node = (name, attributes, text) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return svg.appendChild(made);
  };
  const X = (strength) => 50 + 470 * strength;
  const Y = (mrr) => 320 - 300 * mrr;
  const line = (points, attributes) =>
    node("polyline", { points: points.map(([x, y]) => `${X(x)},${Y(y)}`).join(" "), fill: "none", ...attributes });

  function draw() {
    const now = Object.fromEntries(Object.entries(sliders).map(([name, one]) => [name, Number(one.value)]));
    for (const one of Object.values(sliders)) one.nextElementSibling.textContent = grid[one.dataset.axis][one.value];
    svg.replaceChildren();
    for (const tick of [0, 0.2, 0.4, 0.6, 0.8, 1]) {
      node("line", { x1: X(0), x2: X(1), y1: Y(tick), y2: Y(tick), stroke: "currentColor", "stroke-opacity": 0.15 });
      node("text", { x: 42, y: Y(tick) + 4, "text-anchor": "end", "font-size": 12, fill: "currentColor" }, tick);
      node("text", { x: X(tick), y: 338, "text-anchor": "middle", "font-size": 12, fill: "currentColor" }, tick);
    }
    node("text", { x: X(0.5), y: 356, "text-anchor": "middle", "font-size": 13, fill: "currentColor" }, "strength");
    node("text", { x: 50, y: 12, "font-size": 13, fill: "currentColor" }, "MRR");
    const truth = grid.strength.map((x, i) => [x, grid.complete[i * sizes[2] + now.answers]]);
    line(truth, { stroke: "currentColor", "stroke-width": 1.5, "stroke-dasharray": "6 4" });
    const [, top] = truth[truth.length - 1];
    node("text", { x: X(0.97), y: Y(top) + 4, "font-size": 12, fill: "currentColor" }, "complete test");
    const of = { a: now.correlation, b: independent };
    const models = ["a", "b"].map((name, i) => {
      const curve = grid.strength
        .map((x, l) => [x, at(grid.mean, l, now.sparsity, now.answers, of[name])])
        .filter(([, y]) => y !== null);
      if (i === 0 || of.a !== independent) {
        line(curve, { stroke: colours[i], "stroke-width": 2 });
        const [x, y] = curve[curve.length - 1];
        const words = of.a === independent ? "this test" : `this test, ${name.toUpperCase()}`;
        node("text", { x: X(x) + 8, y: Y(y) + (i ? 10 : -2), "font-size": 12, fill: colours[i] }, words);
      }
      const l = now[name];
      const place = [l, now.sparsity, now.answers, of[name]];
      return { name: name.toUpperCase(), strength: grid.strength[l], mean: at(grid.mean, ...place),
        variance: at(grid.variance, ...place), true: grid.complete[l * sizes[2] + now.answers] };
    });
    root.querySelector(".sentence").textContent = said(models);
    models.forEach((one, i) => {
      if (one.mean === null) return;
      node("circle", { cx: X(one.strength), cy: Y(one.mean), r: 5, fill: colours[i] });
      node("circle", { cx: X(one.strength), cy: Y(one.true), r: 4, fill: "none", stroke: colours[i] });
      node("text", { x: X(one.strength) - 12, y: Y(one.mean) - 8, "font-size": 13, fill: colours[i] }, one.name);
    });
  }

  function said(models) {
    if (models.some((one) => one.mean === null))
      return "No model of this strength has this correlation at this sparsity: choose another one.";
    const [a, b] = models;
    const known = models.map((one) => `${one.name} has a true MRR of ${one.true.toFixed(3)} and shows ${one.mean.toFixed(3)}`);
    const shown = `${known.join("; ")}.`;
    if (a.strength === b.strength) return `${shown} Both are equally strong.`;
    const better = a.strength > b.strength ? a : b;
    const other = better === a ? b : a;
    const difference = better.mean - other.mean;
    const deviation = Math.sqrt(a.variance + b.variance);
    const wrong = below((-difference * Math.sqrt(1000)) / deviation);
    const percent = wrong < 0.001 ? "below 0.1 %" : `${(100 * wrong).toFixed(1)} %`;
    const chance = `With 1,000 queries the chance of the wrong order is ${percent}.`;
    if (difference <= 0)
      return `${shown} The order is wrong on average, however many queries there are: ${better.name} is better. ${chance}`;
    const needed = Math.ceil(((1.6448536269514722 * deviation) / difference) ** 2);
    return `${shown} It takes ${needed.toLocaleString("en")} queries to see with 95 % certainty that ${better.name} is better. ${chance}`;
  }

  root.addEventListener("input", draw);
  draw();
}

document.querySelectorAll(".incomplete").forEach(incomplete);
