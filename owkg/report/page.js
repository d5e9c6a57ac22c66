"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const page = JSON.parse($("numbers").textContent);
  const metric = $("metric"), pair = $("pair"), root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");

  const number = (cell) => (cell.textContent === "–" ? null : Number(cell.textContent));
  const cells = (row) => [...row.querySelectorAll("td")].map(number);
  // Ends of cells around points: halfway to the next.
  const ends = (points) => {
    const half = points.length > 1 ? (i) => (points[i + 1] - points[i]) / 2 : () => 0.05;
    const last = points.length - 1;
    return points.map((x, i) => [x - half(Math.max(i - 1, 0)), x + half(Math.min(i, Math.max(last - 1, 0)))]);
  };

  // Probabilities of the pair as [correlations][sparsities], from the table of the map.
  const maps = new Map();
  const map = (one) => {
    if (!maps.has(one.id)) {
      const body = document.querySelector(`#table-box tbody[data-only="${one.id}"]`);
      maps.set(one.id, [...(body ? body.rows : [])].slice(1).map(cells));
    }
    return maps.get(one.id);
  };

  const at = { x: 0, y: 0 }; // the point of the map that the page describes, as indices
  const CROP = 0.2; // of correlations on the map, where the stated range is not wider

  const data = {
    models(place) {
      const rows = [];
      for (const [of, model, ...values] of page.models) {
        if (of !== place) continue;
        for (const [i, kind] of ["known answers", "complete test, implied"].entries()) {
          const [value, low, high] = values.slice(3 * i, 3 * i + 3);
          if (value !== null) rows.push({ model, kind, value, low, high });
        }
      }
      return { rows };
    },
    grid(place, chosen) {
      const role = (model) => (chosen && model === chosen.first ? "first" : chosen && model === chosen.second ? "second" : "other");
      const rows = page.grid.filter(([of]) => of === place)
        .map(([, model, sparsity, full, low, high]) => ({ model, sparsity, full, low, high, role: role(model) }))
        .filter((row) => row.full !== null);
      const seen = page.models.filter(([of, model, value]) => of === place && role(model) !== "other" && value !== null)
        .map(([, model, value]) => ({ value, role: role(model) }));
      const stated = page.sparsity ? [{ x: page.sparsity[0], x2: page.sparsity[1] }] : [];
      const breaks = chosen && chosen.breaks !== null
        ? [{ sparsity: chosen.breaks, label: chosen.breaks ? `sure below ${chosen.breaks.toFixed(2)}` : "not sure at any sparsity" }] : [];
      const [left, right] = [(x) => x > 0.5, (x) => x <= 0.5].map((side) => breaks.filter(({ sparsity }) => side(sparsity)));
      return { rows, seen, stated, breaks, left, right };
    },
    box(place, chosen) {
      const rows = [], box = chosen ? map(chosen) : [];
      const across = ends(page.sparsities), along = ends(page.correlations);
      const stated = chosen && chosen.stated;
      const most = Math.max(CROP, ...(stated ? stated.slice(2).map(Math.abs) : [])) + 1e-9;
      box.forEach((line, j) => line.forEach((p, i) => {
        if (p !== null && Math.abs(page.correlations[j]) <= most) {
          rows.push({ sparsity: page.sparsities[i], correlation: page.correlations[j], p, i, j,
            x: Math.max(0, across[i][0]), x2: across[i][1], y: along[j][0], y2: along[j][1] });
        }
      }));
      if (!rows.length) return { rows, outside: [], stated: [], cross: [] };
      const [left, right, down, up] = [Math.min(...rows.map((r) => r.x)), Math.max(...rows.map((r) => r.x2)),
        Math.min(...rows.map((r) => r.y)), Math.max(...rows.map((r) => r.y2))];
      const cross = [{ sparsity: page.sparsities[at.x], correlation: page.correlations[at.y] }];
      if (!stated) return { rows, outside: [], stated: [], cross };
      // A range of one point is drawn as wide as a line can be seen.
      const wide = (low, high, least, [from, to]) => {
        const middle = (low + high) / 2, half = Math.max(high - low, least) / 2;
        return [Math.max(middle - half, from), Math.min(middle + half, to)];
      };
      const [x, x2] = wide(stated[0], stated[1], 0.02 * (right - left), [left, right]);
      const [y, y2] = wide(stated[2], stated[3], 0.03 * (up - down), [down, up]);
      const outside = [{ x: left, x2: x, y: down, y2: up }, { x: x2, x2: right, y: down, y2: up },
        { x, x2, y: down, y2: y }, { x, x2, y: y2, y2: up }].filter((r) => r.x2 - r.x > 1e-9 && r.y2 - r.y > 1e-9);
      return { rows, outside, stated: [{ x, x2, y, y2 }], cross };
    },
    power(place, chosen) {
      const rows = (chosen ? page.power[chosen.id] : []).map((wrong, i) => ({ queries: page.queries[i], wrong }))
        .filter(({ wrong }) => wrong !== null);
      const last = Math.max(...rows.map(({ queries }) => queries)), first = Math.min(...rows.map(({ queries }) => queries));
      const mark = (queries, what) => (queries && queries >= first && queries <= last
        ? [{ queries, label: `${what}: ${queries.toLocaleString("en")}` }] : []);
      const required = mark(chosen && chosen.required, "required"), asked = mark(page.asked, "in this test");
      // On the side of the line where there is room.
      const split = (of) => [(x) => x ** 2 > first * last, (x) => x ** 2 <= first * last]
        .map((side) => of.filter(({ queries }) => side(queries)));
      const [[requiredLeft, requiredRight], [askedLeft, askedRight]] = [required, asked].map(split);
      return { rows, marks: [...required, ...asked], requiredLeft, requiredRight, askedLeft, askedRight };
    },
  };

  // Without evaluating text or adding style sheets, neither of which the page allows.
  const EMBED = { renderer: "svg", actions: false, ast: true, defaultStyle: false, tooltip: { disableDefaultStyle: true } };

  const chosen = () => page.pairs.find(({ id }) => String(id) === pair.value);

  // Pairs of the metric; the one chosen before, in whichever order, stays.
  const list = () => {
    const before = chosen(), place = Number(metric.value);
    const of = page.pairs.filter((one) => one.place === place);
    pair.replaceChildren(...of.map((one) => new Option(`${one.first} – ${one.second}`, one.id)));
    const same = before && of.find((one) => [one.first, one.second].sort().join("\0") === [before.first, before.second].sort().join("\0"));
    if (same) pair.value = same.id;
  };

  // One sentence on the point of the map under the cross.
  const percent = (x) => `${Math.round(100 * x)} %`;
  const chance = (p) => (p > 0.9995 ? "more than 0.999" : p < 0.0005 ? "less than 0.001" : p.toFixed(3));
  const describe = () => {
    const one = chosen(), here = $("point");
    const p = one && map(one).length ? map(one)[at.y][at.x] : undefined;
    here.hidden = p === undefined;
    if (p === undefined) return;
    const apart = page.correlations[at.y];
    const than = Math.abs(apart) < 1e-9 ? "the same as that" : `${Math.abs(apart).toFixed(2)} ${apart > 0 ? "above" : "below"} that`;
    const where = `If ${percent(page.sparsities[at.x])} of the true answers are missing and the correlation of ${one.second} is ${than} of ${one.first}, `;
    here.textContent = where + (p === null ? "no such correlation is feasible."
      : `${one.first} is better on the complete test with probability ${chance(p)}.`);
  };

  let drawing = {}; // of each figure, what Vega made of it
  const move = (i, j) => {
    [at.x, at.y] = [i, j];
    [$("point-x").value, $("point-y").value] = [i, j];
    describe();
    const view = drawing.box && drawing.box.view;
    if (view) view.data("cross", [{ sparsity: page.sparsities[i], correlation: page.correlations[j] }]).runAsync();
  };

  const draw = async () => {
    const place = Number(metric.value), one = chosen(), label = page.labels[place];
    for (const row of document.querySelectorAll("[data-place]")) row.hidden = Number(row.dataset.place) !== place;
    for (const part of document.querySelectorAll("[data-only]")) part.hidden = !one || part.dataset.only !== String(one.id);
    const names = { first: one ? one.first : "–", second: one ? one.second : "–", metric: label };
    for (const span of document.querySelectorAll("[data-name]")) span.textContent = names[span.dataset.name];
    for (const [name, spec] of Object.entries(page.charts)) {
      const chart = $(`chart-${name}`), datasets = data[name](place, one);
      const about = name === "models" ? label : `${names.first} and ${names.second}, ${label}`;
      const description = `${chart.dataset.about}: ${about}. The tables have the numbers.`;
      const layer = spec.layer.filter(({ data }) => !data || datasets[data.name].length > 0);
      chart.closest("figure").hidden = datasets.rows.length === 0;
      // What is folded has no width yet.
      const width = chart.clientWidth ? spec.width : document.querySelector("main").clientWidth - 40;
      spec.config.axis.labelLimit = Math.max(80, 0.28 * (chart.clientWidth || width)); // of long names of models
      if (datasets.rows.length) drawing[name] = await vegaEmbed(chart, { ...spec, width, layer, description, datasets }, EMBED);
    }
    if (drawing.box) {
      for (const kind of ["mousemove", "click"]) {
        drawing.box.view.addEventListener(kind, (_, item) => {
          const cell = item && item.datum;
          if (cell && cell.j !== undefined && (cell.i !== at.x || cell.j !== at.y)) move(cell.i, cell.j);
        });
      }
    }
    describe();
    document.body.dataset.drawn = one ? one.id : place;
  };

  // What follows from a range of the grid, by the rules of the verdicts.
  const follows = (one, [from, to], [low, high]) => {
    const inside = map(one).slice(low, high + 1).flatMap((line) => line.slice(from, to + 1)).filter((p) => p !== null);
    const least = Math.min(...inside), most = Math.max(...inside), sparsity = page.sparsities[to];
    const missing = page.answers === null ? Infinity : page.answers * sparsity / (1 - sparsity) - page.found;
    const range = least === most ? chance(least) : `${chance(least)} to ${chance(most)}`;
    const better = `${one.first} is better on the complete test with probability ${range}.`;
    if (one.turned) return ["reversed", `${one.second} is ahead once the judged answers count.`];
    if (missing < 0 && !(one.shown && one.certified === null)) {
      return ["open", "Judging found more answers than this sparsity allows, so nothing follows from it."];
    }
    if (one.shown && (one.certified === null || one.certified > missing)) {
      return ["holds", `${one.first} stays ahead: ${one.certified === null ? "no number of missing answers reverses the order."
        : `at least ${one.certified.toLocaleString("en")} missing answers would be needed, more than this sparsity allows.`}`];
    }
    if (!inside.length) return ["open", "No correlation in this range is feasible."];
    if (most < 1 - page.level) return ["reversed", `${one.second} is ahead on the complete test: ${better}`];
    if (!one.shown) return ["open", `These queries do not show the difference (${one.p}).`];
    return least >= page.level ? ["holds", better] : ["open", better];
  };

  const inputs = $("inputs"), ranges = ["sparsity", "correlation"];
  const slider = (name, end) => $(`${name}-${end}`);
  const taken = (name) => ["from", "to"].map((end) => Number(slider(name, end).value));
  const told = () => {
    for (const name of ranges) {
      const points = name === "sparsity" ? page.sparsities : page.correlations;
      for (const end of ["from", "to"]) {
        const text = points[Number(slider(name, end).value)].toFixed(2);
        slider(name, end).setAttribute("aria-valuetext", text);
        $(`${name}-${end}-value`).textContent = text;
      }
    }
  };
  const audited = new Map(); // what the audit itself says, by its place on the page
  const say = (part, nodes) => {
    if (!audited.has(part)) audited.set(part, [...part.childNodes]);
    part.replaceChildren(...nodes);
  };
  const explore = () => {
    told();
    const [sparsity, correlation] = ranges.map(taken), place = metric.value;
    const counts = {};
    for (const one of page.pairs) {
      const [kind, text] = follows(one, sparsity, correlation);
      if (String(one.place) === place) counts[kind] = (counts[kind] || 0) + 1;
      const link = document.querySelector(`[data-link="${one.id}"]`);
      if (!link) continue;
      const [name, line] = ["b", "span"].map((tag) => document.createElement(tag));
      [name.textContent, line.textContent] = [kind, text];
      if (!link.dataset.kind) link.dataset.kind = link.className;
      say(link, [name, " ", line]);
      link.className = `link ${kind}`;
    }
    const total = Object.values(counts).reduce((a, b) => a + b, 0);
    const parts = Object.entries(page.counted).filter(([kind]) => counts[kind]).map(([kind, [one, several]], i) => {
      const number = total === 1 ? "the only comparison" : i ? counts[kind] : `${counts[kind]} of ${total} comparisons`;
      return `${number} ${counts[kind] === 1 ? one : several}`.replace("your assumptions", "these assumptions");
    });
    const card = document.querySelector(`.card[data-place="${place}"] .sentence`);
    if (card && parts.length) say(card, [`By ${page.labels[Number(place)]}, ${parts.join(", ")}.`]);
    for (const part of document.querySelectorAll(".apart")) part.hidden = true; // of the audit
    $("explored").hidden = false;
  };
  const unexplore = () => {
    for (const [part, nodes] of audited) {
      part.replaceChildren(...nodes);
      if (part.dataset.kind) part.className = part.dataset.kind;
    }
    audited.clear();
    for (const part of document.querySelectorAll(".apart")) part.hidden = false;
    $("explored").hidden = true;
    start();
  };
  // The ends of the grid around what is stated.
  const start = () => {
    if (!inputs || !page.sparsities.length) return;
    const one = chosen() || page.pairs[0], stated = (one && one.stated) || [0, page.sparsities.at(-1), 0, 0];
    const around = (points, low, high) => [Math.max(points.findLastIndex((x) => x <= low + 1e-9), 0),
      points.findIndex((x) => x >= high - 1e-9) < 0 ? points.length - 1 : points.findIndex((x) => x >= high - 1e-9)];
    const found = [around(page.sparsities, stated[0], stated[1]), around(page.correlations, stated[2], stated[3])];
    ranges.forEach((name, i) => ["from", "to"].forEach((end, j) => { slider(name, end).value = found[i][j]; }));
    told();
  };
  if (inputs) {
    inputs.addEventListener("input", ({ target }) => {
      const [name, end] = target.id.split("-"), other = slider(name, end === "from" ? "to" : "from");
      if (taken(name)[0] > taken(name)[1]) other.value = target.value;
      explore();
    });
    inputs.addEventListener("submit", (event) => event.preventDefault());
  }
  $("back").addEventListener("click", unexplore);

  for (const [axis, points] of [["x", page.sparsities], ["y", page.correlations]]) {
    const input = $(`point-${axis}`);
    input.max = Math.max(points.length - 1, 0);
    input.addEventListener("input", () => move(Number($("point-x").value), Number($("point-y").value)));
  }
  const nearest = (points, to) => points.reduce((best, x, i) => (Math.abs(x - to) < Math.abs(points[best] - to) ? i : best), 0);
  if (page.sparsities.length) {
    const middle = page.sparsity ? (page.sparsity[0] + page.sparsity[1]) / 2 : 0.5;
    [at.x, at.y] = [nearest(page.sparsities, middle), nearest(page.correlations, 0)];
    [$("point-x").value, $("point-y").value] = [at.x, at.y];
  } else {
    $("point-x").closest("p").hidden = true;
  }

  // Rows by a column: numbers by their size, then words; again for the other way round.
  const sorted = document.querySelector("#table-pairs");
  const key = (row, i) => {
    const text = row.cells[i].textContent, found = /^(?:[<>]|at least)?\s?(-?[\d.,]+(?:e[+-]\d+)?)/.exec(text);
    return found ? Number(found[1].replaceAll(",", "")) : text === "–" ? "" : text;
  };
  for (const [i, head] of [...(sorted ? sorted.tHead.rows[0].cells : [])].entries()) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending", sign = up ? 1 : -1;
      for (const other of sorted.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const rows = [...sorted.tBodies[0].rows].map((row) => [key(row, i), row]);
      rows.sort(([a], [b]) => sign * (typeof a !== typeof b ? (typeof a === "number" ? -1 : 1)
        : typeof a === "number" ? a - b : a.localeCompare(b)));
      sorted.tBodies[0].append(...rows.map(([, row]) => row));
    });
  }

  // A figure as a file: with the colours of now, the hatching and the ground of the page.
  const drawn = (chart) => {
    const svg = chart.querySelector("svg").cloneNode(true), style = getComputedStyle(root);
    svg.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    svg.prepend(document.querySelector(".defs defs").cloneNode(true));
    const ground = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    for (const [name, value] of [["width", "100%"], ["height", "100%"], ["fill", "var(--paper)"]]) ground.setAttribute(name, value);
    svg.prepend(ground);
    return new XMLSerializer().serializeToString(svg).replace(/var\((--[a-z]+)\)/g, (_, name) => style.getPropertyValue(name).trim());
  };
  const url = (text) => `data:image/svg+xml;base64,${btoa(Array.from(new TextEncoder().encode(text), (c) => String.fromCharCode(c)).join(""))}`;
  const save = (href, name) => { const link = document.createElement("a"); [link.href, link.download] = [href, name]; link.click(); };
  for (const button of document.querySelectorAll("[data-save]")) {
    button.addEventListener("click", async () => {
      const chart = button.closest("figure").querySelector(".chart"), name = chart.id.replace("chart-", "audit-");
      const text = drawn(chart);
      if (button.dataset.save === "svg") { save(url(text), `${name}.svg`); return; }
      const image = new Image(), size = chart.querySelector("svg").getBoundingClientRect();
      image.src = url(text);
      await image.decode();
      const canvas = document.createElement("canvas");
      [canvas.width, canvas.height] = [2 * size.width, 2 * size.height];
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      save(canvas.toDataURL("image/png"), `${name}.png`);
    });
  }

  for (const button of document.querySelectorAll("[data-copy]")) {
    button.addEventListener("click", async () => {
      const text = $(button.dataset.copy);
      try { await navigator.clipboard.writeText(text.textContent); } catch {
        getSelection().selectAllChildren(text); // to copy by hand
        return;
      }
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
  }

  let busy = Promise.resolve();
  const again = () => { delete document.body.dataset.drawn; busy = busy.then(draw); };

  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);
  const theme = () => { $("theme").textContent = isDark() ? "Light" : "Dark"; };
  $("theme").addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; theme(); });
  dark.addEventListener("change", theme);

  // On paper nothing can be opened.
  const opened = new Set();
  const paper = (on) => {
    for (const part of on ? document.querySelectorAll("details:not([open])") : opened) {
      part.open = on;
      if (on) opened.add(part);
    }
    if (!on) opened.clear();
  };
  matchMedia("print").addEventListener("change", ({ matches }) => paper(matches));
  addEventListener("beforeprint", () => paper(true));
  addEventListener("afterprint", () => paper(false));

  metric.replaceChildren(...page.labels.map((label, i) => new Option(label, i)));
  metric.addEventListener("change", () => { list(); again(); if (!$("explored").hidden) explore(); });
  pair.addEventListener("change", again);
  metric.form.addEventListener("submit", (event) => event.preventDefault());
  theme();
  list();
  start();
  again();
})();
