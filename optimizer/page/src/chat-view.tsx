import { App, applyDocumentTheme, type McpUiHostContext } from "@modelcontextprotocol/ext-apps";
import { useEffect, useState } from "preact/hooks";
import { HostApi, type ToolPlan } from "./api/host-api";
import { problemOf, type ShownPlan } from "./api/optimizer-api";
import type { Problem } from "./api/wire";
import { Page } from "./page";
import { Busy, ProblemNotice } from "./parts/notice";

/** What a tool's result opens: the fleet of a namespace, or a plan for it. */
interface Opened {
  namespace: string;
  plan: ShownPlan | null;
}

/** The page in the frame of a chat: it opens what the assistant's tool returned. */
export function ChatView() {
  const [api] = useState(() => new HostApi(new App({ name: "dsf-page", version: "1" })));
  const [opened, setOpened] = useState<Opened | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  useEffect(() => {
    connect(api, setOpened, (thrown) => setProblem(problemOf(thrown)));
  }, [api]);
  if (problem) return <ProblemNotice problem={problem} />;
  if (!opened) return <Busy what="Waiting for the assistant's tool" />;
  return <Page api={api} namespace={opened.namespace} shown={opened.plan} />;
}

/** Connects to the host, and tells what its tool opens, or why nothing comes. */
function connect(
  api: HostApi,
  onOpened: (opened: Opened) => void,
  onProblem: (thrown: unknown) => void,
) {
  const { app } = api;
  let namespace = "default";
  // The host tells the tool's input and result once, so these stand before the connection.
  app.addEventListener("toolinput", ({ arguments: given }) => {
    const told = given as { namespace?: string; request?: { namespace?: string } } | undefined;
    namespace = told?.request?.namespace ?? told?.namespace ?? namespace;
  });
  app.addEventListener("toolresult", ({ structuredContent }) => {
    const told = (structuredContent ?? {}) as Partial<ToolPlan>;
    if (!told.digest || !told.moves) return onOpened({ namespace, plan: null });
    void api.shown(told as ToolPlan).then((plan) => onOpened({ namespace, plan }));
  });
  app.addEventListener("toolcancelled", ({ reason }) => {
    onProblem(new Error(`The assistant's tool was cancelled: ${reason ?? "no reason was given"}`));
  });
  app.addEventListener("hostcontextchanged", follow);
  app.connect().then(() => follow(app.getHostContext()), onProblem);
}

function follow(context: McpUiHostContext | undefined) {
  if (context?.theme) applyDocumentTheme(context.theme);
}
