import { defineConfig } from "vite";
import { viteSingleFile } from "vite-plugin-singlefile";

export default defineConfig({
  plugins: [viteSingleFile({ removeViteModuleLoader: true })],
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: { target: "es2022", reportCompressedSize: false },
  // `npm run dev` serves the page beside an optimizer that runs on its usual port.
  server: { proxy: { "^/(?!src|node_modules|@|index|$)": "http://127.0.0.1:8338" } },
});
