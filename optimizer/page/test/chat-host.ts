/**
 * A host of MCP Apps for tests: it calls one tool of the MCP server at /mcp, and shows what the
 * tool links to. Its address names the tool and its arguments.
 */
import {
  AppBridge,
  PostMessageTransport,
  buildAllowAttribute,
  getToolUiResourceUri,
} from "@modelcontextprotocol/ext-apps/app-bridge";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

/** What the extension has a host enforce for a resource that names no other origin. */
const POLICY =
  "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:";

const asked = new URLSearchParams(location.search);
const tool = asked.get("tool") ?? "fleet_overview";
const given = JSON.parse(asked.get("arguments") ?? "{}") as Record<string, unknown>;
const info = { name: "chat-host", version: "1" };

const client = new Client(info, {
  versionNegotiation: { mode: asked.has("legacy") ? "legacy" : "auto" },
  capabilities: {
    extensions: { "io.modelcontextprotocol/ui": { mimeTypes: ["text/html;profile=mcp-app"] } },
  },
});
await client.connect(new StreamableHTTPClientTransport(new URL("/mcp", location.href)));
const { tools } = await client.listTools();
const called = tools.find((item) => item.name === tool);
const uri = called && getToolUiResourceUri(called);
if (!called || !uri) throw new Error(`${tool} has no view`);
const result = await client.callTool({ name: tool, arguments: given });
const [page] = (await client.readResource({ uri })).contents;
if (!page || !("text" in page)) throw new Error(`${uri} is no text`);

const frame = document.createElement("iframe");
frame.title = "view";
frame.setAttribute("sandbox", "allow-scripts");
frame.setAttribute("allow", buildAllowAttribute(undefined));
document.body.append(frame);
const inside = frame.contentWindow;
if (!inside) throw new Error("the frame has no window");
const bridge = new AppBridge(
  client,
  info,
  { serverTools: {} },
  {
    hostContext: { theme: asked.get("theme") === "dark" ? "dark" : "light" },
  },
);
bridge.addEventListener("initialized", async () => {
  await bridge.sendToolInput({ arguments: given });
  await bridge.sendToolResult(result as Parameters<typeof bridge.sendToolResult>[0]);
});
await bridge.connect(new PostMessageTransport(inside, inside));
frame.srcdoc = page.text.replace(
  "<head>",
  `<head><meta http-equiv="Content-Security-Policy" content="${POLICY}">`,
);
