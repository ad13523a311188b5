// SPDX-License-Identifier: Apache-2.0
// The scoring API around score.js: GET /healthz, /config and /metrics, POST /scoring.
//
// HOST and PORT, or --port, set the address, and SCORING_TOKEN the bearer token that the scoring call
// must carry; without it the call needs none. It needs nothing but Node.js 20.

import { createHash, timingSafeEqual } from "node:crypto";
import { createServer, STATUS_CODES } from "node:http";

import { CONFIG, score } from "./score.js";

const MAX_BODY_BYTES = 8 * 1024 * 1024;
const MAX_DISCARDED_BYTES = 4 * MAX_BODY_BYTES;
const NUMBER = /^([-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?|NaN|[-+]?Inf)$/i;
const { HOST = "127.0.0.1", PORT = "8000", SCORING_TOKEN = "" } = process.env;

const counts = new Map();

class Refused extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

const digest = (text) => createHash("sha256").update(text).digest();
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const isSample = (value) =>
  Array.isArray(value) &&
  value.length === 2 &&
  typeof value[0] === "number" &&
  typeof value[1] === "string" &&
  NUMBER.test(value[1]);
const isSeries = (value) =>
  isObject(value) &&
  isObject(value.metric) &&
  Object.values(value.metric).every((text) => typeof text === "string") &&
  Array.isArray(value.values) &&
  value.values.every(isSample);

async function bodyOf(request) {
  const sent = request.headers.authorization ?? "";
  if (SCORING_TOKEN && !timingSafeEqual(digest(sent), digest(`Bearer ${SCORING_TOKEN}`))) {
    throw new Refused(401, "the Authorization header must be: Bearer, and the scorer's token");
  }
  const kind = (request.headers["content-type"] ?? "").split(";")[0].trim().toLowerCase();
  if (kind !== "application/json") {
    throw new Refused(415, "the body must be JSON: send it as application/json");
  }
  const chunks = [];
  let size = 0;
  for await (const chunk of request) {
    size += chunk.length;
    if (size > MAX_DISCARDED_BYTES) {
      break;
    }
    if (size <= MAX_BODY_BYTES) {
      chunks.push(chunk);
    }
  }
  // Only now: closing before the end of the body would reset the connection.
  if (size > MAX_BODY_BYTES) {
    throw new Refused(413, `the body is longer than ${MAX_BODY_BYTES} bytes: ask for less`);
  }
  return Buffer.concat(chunks).toString("utf8");
}

function seriesOf(body) {
  let document;
  try {
    document = JSON.parse(body);
  } catch (error) {
    throw new Refused(400, `the body is not JSON: ${error.message}`);
  }
  if (!isObject(document) || !Array.isArray(document.data)) {
    throw new Refused(422, "data: a list of series is needed");
  }
  const wrong = document.data.findIndex((series) => !isSeries(series));
  if (wrong >= 0) {
    const form = '{"metric": {label: text}, "values": [[seconds, "number"], ...]}';
    throw new Refused(422, `data[${wrong}]: a series must be ${form}`);
  }
  return document.data;
}

async function answerOf(request) {
  const known = {
    "GET /healthz": () => ({ status: "ok" }),
    "GET /config": () => CONFIG,
    "POST /scoring": async () => ({ results: score(seriesOf(await bodyOf(request))) }),
  }[`${request.method} ${request.url}`];
  if (!known) {
    throw new Refused(404, "there is nothing at this path");
  }
  return known();
}

function write(response, status, kind, document, headers = {}) {
  send(response, status, `application/${kind}`, JSON.stringify(document), headers);
}

function send(response, status, kind, text, headers = {}) {
  const { url } = response.req;
  const path = ["/healthz", "/config", "/metrics", "/scoring"].includes(url) ? url : "other";
  const series = `scorer_requests_total{code="${status}",path="${path}"}`;
  counts.set(series, (counts.get(series) ?? 0) + 1);
  response.writeHead(status, { "Content-Type": kind, ...headers });
  response.end(text);
}

function metrics() {
  const lines = [...counts].map(([series, count]) => `${series} ${count}\n`);
  return ["# TYPE scorer_requests_total counter\n", ...lines].join("");
}

const server = createServer({ requestTimeout: 30_000 }, async (request, response) => {
  try {
    if (request.method === "GET" && request.url === "/metrics") {
      send(response, 200, "text/plain; version=0.0.4", metrics());
      return;
    }
    write(response, 200, "json", await answerOf(request));
  } catch (error) {
    const refused = error instanceof Refused;
    if (!refused) {
      console.error(error);
    }
    const status = refused ? error.status : 500;
    const detail = refused ? error.message : "the scorer failed; its log has the details";
    const headers = status === 401 ? { "WWW-Authenticate": "Bearer" } : {};
    const document = { title: STATUS_CODES[status], status, detail };
    write(response, status, "problem+json", document, headers);
  }
});

function exit(message) {
  console.error(message);
  process.exit(1);
}

/** Returns the port of the arguments, or of PORT; 0 for a free one. */
function portOf(words) {
  if (words.length && (words.length !== 2 || words[0] !== "--port")) {
    exit("the only option is --port PORT, once");
  }
  const port = words[1] ?? PORT;
  if (!/^\d{1,5}$/.test(port) || Number(port) > 65535) {
    exit(`"${port}" is not a port from 0 to 65535`);
  }
  return Number(port);
}

server.on("error", (error) =>
  exit(`my-scorer can't listen: ${error.message}; choose another port with --port`),
);
server.listen(portOf(process.argv.slice(2).flatMap((word) => word.split("="))), HOST, () => {
  const { address, port } = server.address();
  console.log(`my-scorer listens on http://${address}:${port}`);
});
for (const signal of ["SIGINT", "SIGTERM"]) {
  process.on(signal, () => process.exit(0));
}
