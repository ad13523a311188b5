import { render } from "preact";

const root = document.getElementById("page");
if (root) render(<h1>Dynamic Scoring Framework</h1>, root);
