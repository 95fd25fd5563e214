"use strict";
// Draws the charts of a page and listens to its controls. Texts of users reach the
// page as text nodes only; `plain` is for those that Plotly would read as markup.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const SVG = "http://www.w3.org/2000/svg";
  // Okabe and Ito's colors, which the color-blind can tell apart, without the yellow
  // and the black, which vanish on one ground or the other.
  const COLORS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9"];
  const GRAY = "#808890"; // Of published numbers that no method of ours has.
  const DASHES = [[], [7, 3], [2, 2.5], [10, 3, 2, 3], [14, 4], [5, 2, 2, 2, 2, 2]];
  const MARKERS = [ // Plotly's name, and the same shape within ±4.
    ["circle", "M4,0A4,4 0 1,1 -4,0A4,4 0 1,1 4,0Z"],
    ["square", "M-3.5,-3.5H3.5V3.5H-3.5Z"],
    ["diamond", "M0,-5L5,0L0,5L-5,0Z"],
    ["triangle-up", "M0,-4.5L4.5,3.5H-4.5Z"],
    ["triangle-down", "M0,4.5L4.5,-3.5H-4.5Z"],
    ["cross", "M-1.5,-4.5H1.5V-1.5H4.5V1.5H1.5V4.5H-1.5V1.5H-4.5V-1.5H-1.5Z"],
    ["hexagon", "M4.5,0L2.2,-4H-2.2L-4.5,0L-2.2,4H2.2Z"],
  ];
  const STAR = "M0,-5.5L1.4,-1.8L5.3,-1.7L2.2,.7L3.3,4.5L0,2.3L-3.3,4.5L-2.2,.7L-5.3,-1.7L-1.4,-1.8Z";
  const HEIGHT = 340;
  const NOTHING = "No configuration is shown.";
  const OPTIONS = {
    responsive: true, displaylogo: false,
    modeBarButtons: [["toImage", "resetScale2d"]],
    toImageButtonOptions: { format: "svg", filename: "curves" },
  };
  const TICKS = [-3, -2, -1, 0, 1, 2, 3, 4, 5].flatMap( // Of a logarithm.
    (power) => [1, 2, 5].map((digit) => Number(`${digit}e${power}`)));
  const FIRST = 6; // Lines that are shown where none is the best.
  const BEST = 3; // Configurations of a grid that are drawn in color.
  const PRINTED = { width: 620, height: 230 }; // Of a chart on paper, in CSS pixels.

  const boxes = [...document.querySelectorAll(".chooser input")];
  const radios = [...document.querySelectorAll("input[name=axis]")];
  const legend = document.querySelector(".legend");
  const charts = data.panels.map((panel) => makeChart(panel));
  let axis = data.axes[0];
  let grids = []; // Figures of the axis that is shown.
  let agreement = []; // And that of its budgets, if there is one.

  // 6 colors; then dashes and markers, whose pairs repeat after 42 rounds of them.
  function styleOf(place) {
    const number = data.configurations[place].style;
    const round = Math.floor(number / COLORS.length);
    return {
      color: COLORS[number % COLORS.length],
      dash: DASHES[round % DASHES.length],
      marker: MARKERS[round % MARKERS.length],
    };
  }

  function plain(text) {
    return text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  }

  function element(tag, className, text) {
    const made = document.createElement(tag);
    if (className) made.className = className;
    if (text) made.textContent = text;
    return made;
  }

  function makeChart(panel, parent = document.querySelector(".charts")) {
    const figure = element("figure");
    const caption = element("figcaption");
    const heading = element("h3", "", panel.title);
    caption.append(heading, element("p", "unit", panel.label));
    const plot = element("div", "plot");
    plot.setAttribute("role", "img");
    const below = element("p", "unit below");
    figure.append(caption, plot, below);
    parent.append(figure);
    return { plot, below, heading, title: panel.title };
  }

  function swatch({ color, dash, marker }, isLine) {
    const svg = document.createElementNS(SVG, "svg");
    svg.setAttribute("viewBox", isLine ? "-18 -7 36 14" : "-7 -7 14 14");
    svg.setAttribute("class", isLine ? "swatch" : "swatch mark");
    svg.setAttribute("aria-hidden", "true");
    const line = document.createElementNS(SVG, "path");
    if (isLine) line.setAttribute("d", "M-18,0H18");
    line.setAttribute("stroke", color);
    line.setAttribute("stroke-width", "2");
    line.setAttribute("stroke-dasharray", dash.join(" "));
    const shape = document.createElementNS(SVG, "path");
    shape.setAttribute("d", marker[1]);
    shape.setAttribute(isLine ? "fill" : "stroke", color);
    if (!isLine) shape.setAttribute("fill", "none");
    svg.append(line, shape);
    return svg;
  }

  function chosen() {
    return boxes.filter((box) => box.checked).map((box) => Number(box.value));
  }

  function hasLine(place) {
    return axis.panels.some((panel) => panel.lines[place]);
  }

  // A closed outline around each run of finite numbers, along one edge and back along
  // the other.
  function outline(x, edge, other) {
    const band = { x: [], y: [] };
    let run = [];
    const close = () => {
      if (run.length > 1) {
        const back = [...run].reverse();
        band.x.push(...run.map((i) => x[i]), ...back.map((i) => x[i]), null);
        band.y.push(...run.map((i) => edge[i]), ...back.map((i) => other[i]), null);
      }
      run = [];
    };
    edge.forEach((value, i) => {
      if (value === null || other[i] === null) close();
      else run.push(i);
    });
    close();
    return band;
  }

  // One deviation around a line's mean; or from it to the other end of its range.
  function bandOf(place, [amounts, mean, other], isRange) {
    const shifted = (sign) => mean.map((m, i) =>
      m === null || other[i] === null ? null : m + sign * other[i]);
    const edges = isRange ? [mean, other] : [shifted(1), shifted(-1)];
    return {
      ...outline(data.amounts[amounts], ...edges),
      type: "scatter", mode: "lines", fill: "toself", hoverinfo: "skip",
      line: { width: 0 }, fillcolor: styleOf(place).color + (isRange ? "55" : "2e"),
    };
  }

  function dashOf(dash) {
    return dash.map((n) => `${n}px`).join(",") || "solid";
  }

  function lineOf(place, [amounts, mean, deviation], isRange) {
    const { color, dash, marker } = styleOf(place);
    const one = data.configurations[place];
    const spread = deviation ? ` ${isRange ? "to" : "±"} %{customdata:,.3~r}` : "";
    return {
      x: data.amounts[amounts], y: mean, customdata: deviation, type: "scatter",
      mode: "lines+markers", name: plain(`${one.method} ${one.label}`),
      hovertemplate: `%{fullData.name}<br>%{y:,.5~r}${spread} at %{x:,.6~r}<extra></extra>`,
      line: { color, width: 2, dash: dashOf(dash) },
      marker: { color, size: 7, symbol: marker[0], maxdisplayed: 7 },
    };
  }

  function colorOfMethod(method) {
    const place = axis.best.find((i) => data.configurations[i].method === method);
    return place === undefined ? GRAY : styleOf(place).color;
  }

  // As `styleOf`, by the method's place; a method of others has the gray.
  function styleOfBest(method) {
    const place = data.methods.indexOf(method);
    const round = Math.max(0, Math.floor(place / COLORS.length));
    return {
      color: place < 0 ? GRAY : COLORS[place % COLORS.length],
      dash: DASHES[round % DASHES.length],
      marker: MARKERS[round % MARKERS.length],
    };
  }

  // What the selected configurations of a method attain, with bars over seeds.
  function attainedOf({ method, label, at, means, deviations }, isByValue) {
    const { color, dash, marker } = styleOfBest(method);
    return {
      x: isByValue ? at.map(plain) : at, y: means,
      type: "scatter", mode: isByValue ? "markers" : "lines+markers",
      name: plain(label),
      hovertemplate: "%{fullData.name}<br>%{y:,.5~r} at %{x}<extra></extra>",
      line: { color, width: 2, dash: dashOf(dash) },
      marker: { color, size: 7, symbol: marker[0] },
      error_y: { array: deviations.map((d) => d ?? 0), color, thickness: 1, width: 3 },
    };
  }

  const isHeldOut = (one) => one.held_out.some((number) => number !== null);

  // The same where other seeds have chosen: hollow, and dotted.
  function heldOutOf({ method, at, held_out }) {
    const { color, marker } = styleOfBest(method);
    return {
      x: at, y: held_out, type: "scatter", mode: "lines+markers",
      name: plain(`${method}, held out`),
      hovertemplate: "%{fullData.name}<br>%{y:,.5~r} at %{x}<extra></extra>",
      line: { color, width: 1.5, dash: "dot" },
      marker: { color, size: 7, symbol: `${marker[0]}-open` },
    };
  }

  function drawBest({ plot, below, title }, panel) {
    const isByValue = panel.categories.length > 0;
    const traces = [
      ...panel.attained.map((one) => attainedOf(one, isByValue)),
      ...panel.attained.filter(isHeldOut).map(heldOutOf),
      ...panel.published.map((one) => publishedOf(one, styleOfBest(one.method).color)),
    ];
    const layout = layoutOf(traces);
    if (isByValue) { // Else they would stand as they appear, method by method.
      Object.assign(layout.xaxis, {
        type: "category", categoryorder: "array",
        categoryarray: panel.categories.map(plain),
      });
    }
    Plotly.react(plot, traces, layout, OPTIONS);
    below.textContent = panel.below;
    plot.setAttribute("aria-label", `${title}: the best of each method by ${panel.below}`);
  }

  // The expected best of n: held out, with its band; dotted where it is not.
  function drawExpected({ plot, below }, panel) {
    const traces = panel.lines.flatMap((line) => {
      const { color, dash } = styleOfBest(line.method);
      const shifted = (sign) => line.held_out.map((mean, i) =>
        mean === null || line.deviations[i] === null ? null : mean + sign * line.deviations[i]);
      const about = {
        x: line.at, type: "scatter", mode: line.at.length > 1 ? "lines" : "markers",
        legendgroup: line.method, marker: { color, size: 7 },
        hovertemplate: "%{fullData.name}<br>%{y:,.5~r} at %{x:,.4~r}<extra></extra>",
      };
      const isHeldOut = line.held_out.some((number) => number !== null);
      return [
        {
          ...outline(line.at, shifted(1), shifted(-1)), type: "scatter", mode: "lines",
          fill: "toself", hoverinfo: "skip", line: { width: 0 }, fillcolor: `${color}2e`,
          legendgroup: line.method, showlegend: false,
        },
        {
          ...about, y: line.plain, name: plain(`${line.method}, not held out`),
          line: { color, width: 1.5, dash: "dot" }, showlegend: !isHeldOut,
          marker: { ...about.marker, symbol: "circle-open" },
        },
        {
          ...about, y: line.held_out, name: plain(line.method), showlegend: isHeldOut,
          line: { color, width: 2, dash: dashOf(dash) },
          error_y: { array: line.deviations.map((d) => d ?? 0), color, thickness: 1.5,
                     width: 5, visible: line.at.length === 1 }, // It has no band.
        },
      ];
    });
    const layout = layoutOf(traces);
    layout.showlegend = true;
    layout.legend = { orientation: "h", y: 1.02, yanchor: "bottom", font: { size: 12 } };
    if (panel.is_log) Object.assign(layout.xaxis, { type: "log", tickvals: TICKS });
    else if (panel.over === "configurations") layout.xaxis.dtick = 1;
    if (panel.mark !== null) {
      layout.shapes = [{
        type: "line", x0: panel.mark, x1: panel.mark, y0: 0, y1: 1, yref: "paper",
        line: { color: GRAY, width: 1 },
      }];
    }
    Plotly.newPlot(plot, traces, layout, OPTIONS);
    below.textContent = panel.below;
    plot.setAttribute("aria-label", `${panel.title}, by ${panel.below}`);
  }

  function publishedOf(one, color) {
    return {
      x: [one.at], y: [one.mean], type: "scatter", mode: "markers", cliponaxis: false,
      name: plain(`${one.method}, published`),
      hovertemplate: "%{fullData.name}<br>%{y:,.5~r} at %{x:,.6~r}<extra></extra>",
      marker: { color, size: 12, symbol: "star-open", line: { width: 1.5 } },
      error_y: { array: [one.deviation ?? 0], visible: one.deviation !== null,
                 color, thickness: 1.5, width: 5 },
    };
  }

  function layoutOf(traces) {
    const largest = (side) => Math.max(
      0, ...traces.flatMap((t) => t[side].filter(Number.isFinite).map(Math.abs)));
    const style = { automargin: true, zeroline: false, gridcolor: "#8884",
                    tickfont: { size: 12 } };
    return {
      autosize: true, height: HEIGHT, showlegend: false, hovermode: "closest",
      margin: { l: 8, r: 14, t: 8, b: 8 },
      font: { family: "inherit" }, uirevision: axis.name,
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      dragmode: matchMedia("(pointer: coarse)").matches ? false : "zoom",
      // 200k and 2M; Plotly would write a small number as 50µ, too.
      xaxis: { ...style, exponentformat: largest("x") < 1000 ? "none" : "SI", nticks: 6 },
      yaxis: { ...style, exponentformat: largest("y") < 1000 ? "power" : "SI" },
    };
  }

  function draw() {
    const places = chosen();
    charts.forEach(({ plot, below, heading, title }, i) => {
      if (data.panels[i].attained) return drawBest(charts[i], data.panels[i]);
      const panel = axis.panels[i] ?? { lines: {}, span: "", published: [] };
      const drawn = places.filter((place) => panel.lines[place]);
      const isRange = data.panels[i].is_range;
      const banded = drawn.filter((place) => panel.lines[place][2]);
      const traces = [
        ...banded.map((place) => bandOf(place, panel.lines[place], isRange)),
        ...drawn.map((place) => lineOf(place, panel.lines[place], isRange)),
        ...panel.published.map((one) => publishedOf(one, colorOfMethod(one.method))),
      ];
      Plotly.react(plot, traces, layoutOf(traces), OPTIONS);
      heading.textContent = panel.span ? `${title}, ${panel.span}` : title;
      below.textContent = axis.name;
      const count = `${drawn.length} of ${boxes.length} configurations`;
      plot.setAttribute("aria-label", `${title} over ${axis.name}: ${count}`);
    });
    drawLegend(places);
  }

  // Marginal means of a method's grid, a part of the chart for each field.
  function drawMarginals({ plot }, grid) {
    const width = 1 / grid.fields.length;
    const { color } = styleOfBest(grid.method);
    const traces = grid.fields.flatMap((field, i) => {
      const x = field.values.map(plain);
      const place = {
        xaxis: `x${i ? i + 1 : ""}`, type: "scatter",
        hovertemplate: "%{fullData.name}<br>%{y:,.5~r} at %{x}<extra></extra>",
      };
      return [
        ...field.seeds.map((y, seed) => ({
          ...place, x, y, mode: "markers", name: plain(grid.seeds[seed]),
          marker: { color, size: 6, opacity: 0.5 },
        })),
        { ...place, x, y: field.means, mode: "lines", name: "mean", line: { color, width: 2 } },
      ];
    });
    const layout = layoutOf(traces);
    grid.fields.forEach((field, i) => {
      layout[`xaxis${i ? i + 1 : ""}`] = {
        ...layout.xaxis, type: "category", domain: [i * width, (i + 0.9) * width],
        title: { text: plain(`${field.symbol}: ${Math.round(100 * field.share)} %`) },
      };
    });
    Plotly.newPlot(plot, traces, layout, OPTIONS);
    plot.setAttribute("aria-label", `${grid.method}: mean scores by value of each field`);
  }

  // Four digits and a suffix, as Plotly writes the numbers of an axis: 9999, 240.2k.
  function suffixed(number) {
    for (const [factor, suffix] of [[1, ""], [1e3, "k"], [1e6, "M"], [1e9, "G"]]) {
      const rounded = Number((number / factor).toPrecision(4));
      if (Math.abs(rounded) < (suffix ? 1000 : 10000)) return `${rounded}${suffix}`;
    }
    return number.toPrecision(4);
  }

  // Parallel coordinates. Plotly's own need WebGL and `eval`, which the page forbids.
  function drawParallel({ plot }, grid) {
    const { color } = styleOfBest(grid.method);
    const scores = grid.lines.map((line) => line.at(-1));
    const [low, high] = [Math.min(...scores), Math.max(...scores)];
    const scaled = (score) => (high > low ? (score - low) / (high - low) : 0.5);
    const axes = grid.fields.map((field) => ({ name: field.symbol, values: field.values }));
    const spread = ({ values }, i) => (values.length > 1 ? i / (values.length - 1) : 0.5);
    const names = [...axes.map(({ name }) => name), grid.metric];
    const traces = grid.lines.map((line, i) => ({
      type: "scatter", mode: "lines", x: names.map((_, n) => n),
      y: [...axes.map((one, n) => spread(one, line[n])), scaled(line.at(-1))],
      text: plain(`${axes.map((one, n) => `${one.name}=${one.values[line[n]]}`).join(" ")}`),
      customdata: names.map(() => scores[i]),
      hovertemplate: "%{text}<br>%{customdata:,.5~r}<extra></extra>",
      line: i < BEST ? { color, width: 2 } : { color: GRAY, width: 1 },
      opacity: i < BEST ? 1 : 0.35,
    })).reverse(); // The best ones are drawn over the others.
    const label = (x, y, text) => ({
      x, y, text: plain(text), showarrow: false, font: { size: 11 }, xanchor: "right",
      xshift: -4, yshift: 7,
    });
    const layout = layoutOf([]);
    layout.xaxis = {
      ...layout.xaxis, tickvals: names.map((_, n) => n), ticktext: names.map(plain),
      range: [-0.3, names.length - 0.7],
    };
    layout.yaxis = { ...layout.yaxis, visible: false, range: [-0.08, 1.08] };
    layout.annotations = [
      ...axes.flatMap((one, n) => one.values.map((value, i) => label(n, spread(one, i), value))),
      ...(high > low ? [low, high] : [low]).map(
        (score) => ({ // Beside the lines, which all end there.
          ...label(axes.length, scaled(score), suffixed(score)),
          xanchor: "left", xshift: 4, yshift: 0,
        })),
    ];
    Plotly.newPlot(plot, traces, layout, OPTIONS);
    plot.setAttribute("aria-label", `${grid.method}: ${grid.lines.length} configurations`);
  }

  function drawGrids() {
    const parent = document.querySelector(".grids");
    if (!parent) return;
    parent.replaceChildren();
    grids = axis.grids.flatMap((grid) => {
      const label = `${grid.metric} at ${grid.at}`;
      const marginals = makeChart({ title: `${grid.method}: each value`, label }, parent);
      const lines = makeChart({ title: `${grid.method}: ${grid.title}`, label }, parent);
      drawMarginals(marginals, grid);
      drawParallel(lines, grid);
      return [marginals, lines];
    });
  }

  // How each budget's ranking agrees with the last one; a dot without each seed.
  function drawAgreement() {
    const parent = document.querySelector(".agreement");
    if (!parent) return;
    parent.replaceChildren();
    agreement = [];
    if (!axis.agreement.length) return;
    const label = "Kendall's τ of each budget with the last one";
    const chart = makeChart({ title: "Rankings of configurations", label }, parent);
    const traces = axis.agreement.flatMap((line) => {
      const { color, dash, marker } = styleOfBest(line.method);
      const open = line.is_of_increments;
      const name = plain(open ? `${line.method}, increments` : line.method);
      return [
        {
          x: line.without.flatMap((dots, i) => dots.map(() => line.at[i])),
          y: line.without.flat(), type: "scatter", mode: "markers", hoverinfo: "skip",
          showlegend: false,
          marker: { color, size: 4, opacity: 0.5, symbol: open ? "circle-open" : "circle" },
        },
        {
          x: line.at, y: line.taus, type: "scatter", mode: "lines+markers", name,
          hovertemplate: "%{fullData.name}<br>%{y:.2f} at %{x:,.6~r}<extra></extra>",
          line: { color, width: 2, dash: open ? "dot" : dashOf(dash) },
          marker: { color, size: 7, symbol: open ? `${marker[0]}-open` : marker[0] },
        },
      ];
    });
    const layout = { ...layoutOf(traces), showlegend: true };
    layout.legend = { orientation: "h", y: 1.02, yanchor: "bottom" };
    Plotly.newPlot(chart.plot, traces, layout, OPTIONS);
    chart.below.textContent = axis.name;
    chart.plot.setAttribute("aria-label", `${label}, over ${axis.name}`);
    agreement = [chart];
  }

  function drawLegend(places) {
    const items = places.filter(hasLine).map((place) => {
      const { method, label, seeds } = data.configurations[place];
      const item = element("li");
      item.append(swatch(styleOf(place), true), element("b", "", method),
                  ` ${label} `, element("small", "", seeds));
      return item;
    });
    const best = data.panels.filter((panel) => panel.attained);
    const unique = (list) => [...new Set(list.map((one) => one.method))];
    const attained = best.flatMap((panel) => panel.attained);
    for (const [label, method] of new Map(attained.map((one) => [one.label, one.method]))) {
      const item = element("li");
      item.append(swatch(styleOfBest(method), true), element("b", "", label), " selected");
      items.push(item);
    }
    if (best.some((panel) => panel.attained.some(isHeldOut))) {
      items.push(element("li", "", "hollow and dotted: held out"));
    }
    const stars = [...axis.panels, ...best].flatMap((panel) => panel.published);
    for (const method of unique(stars)) {
      const item = element("li", "published");
      const color = best.length ? styleOfBest(method).color : colorOfMethod(method);
      const style = { color, dash: [], marker: ["star", STAR] };
      item.append(swatch(style, false), `${method}, published`);
      items.push(item);
    }
    legend.replaceChildren(...(items.length ? items : [element("li", "", NOTHING)]));
    document.querySelector(".count").textContent =
      `${places.length} of ${boxes.length} shown`;
  }

  function show(which) {
    const drawn = boxes.map((box) => Number(box.value)).filter(hasLine);
    const best = new Set(axis.best.length ? axis.best : drawn.slice(0, FIRST));
    for (const box of boxes) {
      box.checked = which === "all" || (which === "best" && best.has(Number(box.value)));
    }
    draw();
  }

  function choose(number) {
    axis = data.axes[number];
    for (const section of document.querySelectorAll("[data-axis]")) {
      section.hidden = Number(section.dataset.axis) !== number;
    }
    for (const box of boxes) {
      const isBest = axis.best.includes(Number(box.value));
      box.parentElement.classList.toggle("best", isBest);
    }
    drawGrids();
    drawAgreement();
  }

  const equal = data.expected_best.map(
    (panel) => makeChart(panel, document.querySelector(".equal")));
  data.expected_best.forEach((panel, i) => drawExpected(equal[i], panel));
  for (const box of boxes) {
    box.after(swatch(styleOf(Number(box.value)), true));
    box.addEventListener("change", draw);
  }
  for (const button of document.querySelectorAll("[data-show]")) {
    button.addEventListener("click", () => show(button.dataset.show));
  }
  for (const radio of radios) {
    radio.addEventListener("change", () => {
      choose(Number(radio.value));
      draw();
    });
  }

  // On paper everything is open, and charts have a width that fits.
  let folded = [];
  window.addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details.table:not([open])")];
    for (const details of folded) details.open = true;
    for (const { plot } of [...charts, ...grids, ...agreement, ...equal]) Plotly.relayout(plot, PRINTED);
  });
  window.addEventListener("afterprint", () => {
    for (const details of folded) details.open = false;
    for (const { plot } of [...charts, ...grids, ...agreement, ...equal]) {
      Plotly.relayout(plot, { width: null, height: HEIGHT, autosize: true });
    }
  });

  for (const controls of document.querySelectorAll(".controls")) controls.hidden = false;
  document.querySelector(".chooser").hidden = data.panels.every((one) => one.attained);
  choose(0);
  show("best");
})();
