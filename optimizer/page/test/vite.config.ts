import { defineConfig } from "vite";
import { viteSingleFile } from "vite-plugin-singlefile";

const here = (path: string) => new URL(path, import.meta.url).pathname;

/** Builds the chat of the browser tests, with the page's own packages. */
export default defineConfig({
  root: here("."),
  plugins: [viteSingleFile({ removeViteModuleLoader: true })],
  build: { target: "es2022", rollupOptions: { input: here("chat-host.html") } },
});
