// Draws each <figure data-chart="address of a Vega-Lite spec"> with the colours of tokens.css.
// No eval: Vega's expressions run through its interpreter (ast), so a strict CSP holds.
const token = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function config() {
  const soft = token("--ink-soft");
  const face = token("--face");
  return {
    background: null,
    font: face,
    view: { stroke: null },
    axis: {
      labelColor: soft, titleColor: soft, gridColor: token("--rule"), domainColor: token("--rule-strong"),
      tickColor: token("--rule-strong"), titleFontWeight: "normal",
    },
    legend: { labelColor: soft, titleColor: soft },
    text: { color: token("--ink") },
    mark: { color: token("--deed") },
    rule: { color: token("--critical") },
    range: { category: ["--deed", "--critical", "--good", "--thought", "--high"].map(token) },
  };
}

const options = {
  ast: true,
  actions: false,
  renderer: "canvas",
  defaultStyle: false,
  tooltip: { disableDefaultStyle: true },
  mode: "vega-lite",
};

async function draw(figure) {
  const place = figure.querySelector(".canvas");
  try {
    if (!figure.spec) {
      const answer = await fetch(figure.dataset.chart, { credentials: "same-origin" });
      if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
      figure.spec = await answer.json();
    }
    place.replaceChildren();
    await window.vegaEmbed(place, figure.spec, { ...options, config: config() });
  } catch (problem) {
    place.textContent = `The chart could not be drawn: ${problem.message}.`;
  }
}

const figures = [...document.querySelectorAll("figure[data-chart]")];
if (window.vegaEmbed) {
  figures.forEach(draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => figures.forEach(draw));
} else {
  for (const figure of figures) {
    figure.querySelector(".canvas").textContent = "Charts need static/vendor/vega-bundle.js; run bin/setup.";
  }
}
