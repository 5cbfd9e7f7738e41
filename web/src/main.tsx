import { render } from "preact";
import { App } from "./app";
import { startKeys } from "./lib/keys";
import { startTheme } from "./lib/theme";
import "./style/base.css";
import "./style/layout.css";
import "./style/parts.css";
import "./style/charts.css";
import "uplot/dist/uPlot.min.css";

startTheme();
startKeys();
const root = document.getElementById("app");
if (root) {
  root.textContent = "";
  render(<App />, root);
}
