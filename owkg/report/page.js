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

  const data = {
    models(place) {
      const rows = [];
      for (const [at, model, ...values] of page.models) {
        if (at !== place) continue;
        for (const [i, kind] of ["known answers", "full test, implied"].entries()) {
          const [value, low, high] = values.slice(3 * i, 3 * i + 3);
          if (value !== null) rows.push({ model, kind, value, low, high });
        }
      }
      return { rows };
    },
    grid(place, chosen) {
      const role = (model) => (chosen && model === chosen.first ? "first" : chosen && model === chosen.second ? "second" : "other");
      const rows = page.grid.filter(([at]) => at === place)
        .map(([, model, sparsity, full, low, high]) => ({ model, sparsity, full, low, high, role: role(model) }))
        .filter((row) => row.full !== null);
      const seen = page.models.filter(([at, model, value]) => at === place && role(model) !== "other" && value !== null)
        .map(([, model, value]) => ({ value, role: role(model) }));
      const stated = page.sparsity ? [{ x: page.sparsity[0], x2: page.sparsity[1] }] : [];
      return { rows, seen, stated };
    },
    box(place, chosen) {
      const rows = [], body = chosen && document.querySelector(`#table-box tbody[data-only="${chosen.id}"]`);
      const across = ends(page.sparsities), along = ends(page.correlations);
      [...(body ? body.rows : [])].slice(1).forEach((row, j) => cells(row).forEach((p, i) => {
        if (p !== null) {
          rows.push({ sparsity: page.sparsities[i], correlation: page.correlations[j], p,
            x: Math.max(0, across[i][0]), x2: across[i][1], y: along[j][0], y2: along[j][1] });
        }
      }));
      const at = chosen && chosen.stated;
      return { rows, stated: at && rows.length ? [{ x: at[0], x2: at[1], y: at[2], y2: at[3] }] : [] };
    },
    power(place, chosen) {
      const row = chosen && document.querySelector(`#table-power tr[data-pair="${chosen.id}"]`);
      const rows = (row ? cells(row) : []).map((wrong, i) => ({ queries: page.queries[i], wrong }))
        .filter(({ wrong }) => wrong !== null);
      const last = Math.max(...rows.map(({ queries }) => queries)), first = Math.min(...rows.map(({ queries }) => queries));
      const marks = [];
      if (chosen && chosen.required) marks.push({ queries: chosen.required, label: "required" });
      if (page.asked) marks.push({ queries: page.asked, label: "in this test" });
      return { rows, marks: marks.filter(({ queries }) => queries >= first && queries <= last) };
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

  const draw = async () => {
    const place = Number(metric.value), one = chosen(), label = page.labels[place];
    for (const row of document.querySelectorAll("[data-place]")) row.hidden = Number(row.dataset.place) !== place;
    for (const part of document.querySelectorAll("[data-only]")) part.hidden = !one || part.dataset.only !== String(one.id);
    const names = { first: one ? one.first : "–", second: one ? one.second : "–", metric: label };
    for (const span of document.querySelectorAll("[data-name]")) span.textContent = names[span.dataset.name];
    for (const [name, spec] of Object.entries(page.charts)) {
      const chart = $(`chart-${name}`), datasets = data[name](place, one);
      const about = name === "models" ? label : `${names.first} and ${names.second}, ${label}`;
      const description = `${chart.dataset.about}: ${about}. The table below has the numbers.`;
      const layer = spec.layer.filter(({ data }) => !data || datasets[data.name].length > 0);
      chart.closest("figure").hidden = datasets.rows.length === 0;
      spec.config.axis.labelLimit = Math.max(80, 0.28 * chart.clientWidth); // of long names of models
      if (datasets.rows.length) await vegaEmbed(chart, { ...spec, layer, description, datasets }, EMBED);
    }
    document.body.dataset.drawn = one ? one.id : place;
  };

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
  metric.addEventListener("change", () => { list(); again(); });
  pair.addEventListener("change", again);
  metric.form.addEventListener("submit", (event) => event.preventDefault());
  theme();
  list();
  again();
})();
