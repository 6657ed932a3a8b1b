// Draws each <figure data-chart="address of a Vega-Lite spec"> with the colours of tokens.css.
// No eval: Vega's expressions run through its interpreter (ast), so a strict CSP holds.
const token = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function config(figure) {
  const soft = token("--ink-soft");
  const numbers = figure.dataset.colours.trim().split(/\s+/);
  return {
    background: null,
    font: token("--face"),
    view: { stroke: null },
    axis: {
      labelColor: soft, titleColor: soft, gridColor: token("--rule"), domainColor: token("--rule-strong"),
      tickColor: token("--rule-strong"), titleFontWeight: "normal", labelFontSize: 12, titleFontSize: 12,
    },
    legend: { labelColor: soft, titleColor: soft, labelFontSize: 12 },
    text: { color: token("--ink") },
    rule: { color: token("--critical") },
    // A run has the colour of its number, as on every page.
    range: { category: numbers.map((number) => token(`--run-${number % 8}`)) },
  };
}

const options = {
  ast: true, actions: false, renderer: "canvas", defaultStyle: false,
  tooltip: { disableDefaultStyle: true }, mode: "vega-lite",
};

async function draw(figure) {
  const place = figure.querySelector(".canvas");
  try {
    if (!figure.spec) {
      place.textContent = "Drawing …";
      const answer = await fetch(figure.dataset.chart, { credentials: "same-origin" });
      const told = await answer.json();
      if (!answer.ok) throw new Error(told.problem ?? `the server answered ${answer.status}`);
      figure.spec = told;
    }
    place.replaceChildren();
    await window.vegaEmbed(place, figure.spec, { ...options, config: config(figure) });
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
